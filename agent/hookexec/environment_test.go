package hookexec

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestEnvironmentOfARelationHook(t *testing.T) {
	host := map[string]string{"PATH": "/bin", "HOME": "/root", "http_proxy": "p", "TMPDIR": "/x", "LC_TIME": "de"}
	got := Environment(Facts{
		Unit: "blog/0", Service: "blog", Charm: "wordpress", Hook: "db-relation-departed", Machine: "0",
		UnitDir: "/u", CharmDir: "/u/charm", Tools: "/u/tools", Socket: "/s", ClientID: "id",
		Environment: "e", UUID: "uuid", Version: "3.6.0", Proxies: Proxies{HTTP: "http://p:1", None: "a,b"},
		Relation: &RelationFacts{Name: "db", ID: "db:0", RemoteUnit: "mysql/1", RemoteService: "mysql",
			Members: []string{"mysql/0", "mysql/2"}, Departing: "mysql/1"},
	}, func(k string) string { return host[k] })
	want := strings.Fields(`JUJU_SOCKET=/s JUJU_AGENT_SOCKET=/s JUJU_AGENT_SOCKET_ADDRESS=/s JUJU_AGENT_SOCKET_NETWORK=unix
		JUJU_CLIENT_ID=id JUJU_CONTEXT_ID=id JUJU_LOCAL_UNIT=blog/0 JUJU_UNIT_NAME=blog/0 JUJU_SERVICE=blog JUJU_CHARM=wordpress
		JUJU_UNIT_DIR=/u CHARM_DIR=/u/charm JUJU_CHARM_DIR=/u/charm PWD=/u/charm JUJU_HOOK_NAME=db-relation-departed
		JUJU_DISPATCH_PATH=hooks/db-relation-departed JUJU_MODEL_NAME=e JUJU_ENV_NAME=e JUJU_MODEL_UUID=uuid JUJU_ENV_UUID=uuid
		JUJU_MACHINE_ID=0 JUJU_VERSION=3.6.0 JUJU_API_ADDRESSES= JUJU_AVAILABILITY_ZONE= CLOUD_API_VERSION= JUJU_CHARM_HTTP_PROXY=http://p:1
		JUJU_CHARM_HTTPS_PROXY= JUJU_CHARM_FTP_PROXY= JUJU_CHARM_NO_PROXY=a,b JUJU_PRINCIPAL_UNIT= DEBIAN_FRONTEND=noninteractive
		APT_LISTCHANGES_FRONTEND=none TERM=dumb JUJU_RELATION=db JUJU_RELATION_ID=db:0 JUJU_REMOTE_UNIT=mysql/1
		JUJU_REMOTE_APP=mysql JUJU_REMOTE_SERVICE=mysql MEMBERS JUJU_DEPARTING_UNIT=mysql/1 PATH=/u/tools:/bin LANG=C.UTF-8
		HOME=/root LC_TIME=de http_proxy=p`)
	for i, v := range want {
		if v == "MEMBERS" {
			want[i] = "JUJU_MEMBERS=mysql/0 mysql/2"
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestMembersBeyondAVariable checks the limit of JUJU_MEMBERS, since Linux starts no process with a
// variable of 128 KiB. A hook gets the longest list that fits. With one more member it gets no list,
// and a message says so.
func TestMembersBeyondAVariable(t *testing.T) {
	r := &RelationFacts{Members: []string{strings.Repeat("m", maxVariableSize-len("JUJU_MEMBERS=")-1)}}
	start := func() (out string, err error) {
		cmd := exec.Command("/bin/sh", "-c", `printf %s "${JUJU_MEMBERS-none}"`)
		cmd.Env = r.variables()
		data, err := cmd.Output()
		return string(data), err
	}
	if out, err := start(); err != nil || out != r.Members[0] || r.TooManyMembers() != "" {
		t.Errorf("the longest: %d bytes of %d, error %v, %q", len(out), len(r.Members[0]), err, r.TooManyMembers())
	}
	r.Members = append(r.Members, "one/1")
	if out, err := start(); err != nil || out != "none" || !strings.Contains(r.TooManyMembers(), "2 members") {
		t.Errorf("one more: %q, error %v, %q", out, err, r.TooManyMembers())
	}
}
