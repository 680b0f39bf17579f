package agent

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state"
	"bijou/testscripts/kit/statetest"
)

// TestEnvironmentOfEveryKindOfHook compares the variables that hooks of a classic and of a modern charm
// see with the table in docs/reference/hooks.md, name by name.
func TestEnvironmentOfEveryKindOfHook(t *testing.T) {
	ownEnvironment(t)
	once(t, func(r *rig) {
		dir := t.TempDir()
		env := map[string]string{}
		for _, name := range hooks("server", "db") {
			env[name] = "cat /proc/$$/environ > " + dir + "/${JUJU_UNIT_NAME%/*}.$JUJU_HOOK_NAME"
		}
		modern := statetest.Meta("wordpress", "series: [jammy]\nrequires:\n  db: mysql\n")
		statetest.AddService(t, r.st, r.recorder(statetest.Meta("mysql", "provides:\n  server: mysql\n"), hooks("server"), env), 1)
		statetest.AddService(t, r.st, r.recorder(modern, hooks("db"), env), 1)
		id := statetest.Relate(t, r.st, "wordpress", "mysql").ID
		r.start()
		r.awaitNote("mysql/0", "server-relation-changed wordpress/0 [wordpress/0]")
		r.awaitNote("wordpress/0", "db-relation-changed mysql/0 [mysql/0]")
		r.settle()
		r.update(func(tx *state.Tx) error { return tx.DestroyRelation(id) })
		r.awaitNote("mysql/0", "server-relation-broken []")
		r.awaitNote("wordpress/0", "db-relation-broken []")
		r.update(func(tx *state.Tx) error { return errors.Join(tx.DestroyUnit("mysql/0"), tx.DestroyUnit("wordpress/0")) })
		r.eventually("both units are gone", func() bool {
			return len(statetest.Read(t, r.st, func(v *state.View) ([]state.Unit, error) { return v.Units("") })) == 0
		})
		for _, side := range []struct{ local, remote, relation, id string }{
			{"mysql", "wordpress", "server", "relation-0"},
			{"wordpress", "mysql", "db", "db:0"},
		} {
			for _, hook := range hooks(side.relation) {
				want := r.hookEnvironment(side.local, hook)
				if kind, ok := strings.CutPrefix(hook, side.relation+"-relation-"); ok {
					maps.Copy(want, relationEnvironment(kind, side.relation, side.id, side.remote))
				}
				if diff := cmp.Diff(want, readEnvironment(t, filepath.Join(dir, side.local+"."+hook))); diff != "" {
					t.Errorf("%s of %s: %s", hook, side.local, diff)
				}
			}
		}
	})
}

// ownEnvironment gives the agent a known environment.
func ownEnvironment(t *testing.T) {
	for _, entry := range os.Environ() {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "LC_") || strings.HasSuffix(strings.ToLower(name), "_proxy") {
			t.Setenv(name, "")
		}
	}
	for name, value := range map[string]string{"LANG": "", "OF_THE_AGENT": "x", "HOME": "/home/agent", "USER": "agent"} {
		t.Setenv(name, value)
	}
}

// hookEnvironment returns the variables of every hook.
func (r *rig) hookEnvironment(service, hook string) map[string]string {
	unit := r.folder(service + "/0")
	env := statetest.Environment()
	return map[string]string{
		"JUJU_SOCKET": "SOCKET", "JUJU_AGENT_SOCKET": "SOCKET", "JUJU_AGENT_SOCKET_ADDRESS": "SOCKET", "JUJU_AGENT_SOCKET_NETWORK": "unix",
		"JUJU_CLIENT_ID": "CLIENT", "JUJU_CONTEXT_ID": "CLIENT",
		"JUJU_LOCAL_UNIT": service + "/0", "JUJU_UNIT_NAME": service + "/0", "JUJU_SERVICE": service, "JUJU_CHARM": service,
		"JUJU_UNIT_DIR": unit, "CHARM_DIR": unit + "/charm", "JUJU_CHARM_DIR": unit + "/charm", "PWD": unit + "/charm",
		"JUJU_HOOK_NAME": hook, "JUJU_DISPATCH_PATH": "hooks/" + hook,
		"JUJU_MODEL_NAME": env.Name, "JUJU_MODEL_UUID": env.UUID, "JUJU_ENV_NAME": env.Name, "JUJU_ENV_UUID": env.UUID,
		"JUJU_MACHINE_ID": "0", "JUJU_VERSION": "3.6.27", "JUJU_API_ADDRESSES": "", "JUJU_AVAILABILITY_ZONE": "", "JUJU_PRINCIPAL_UNIT": "",
		"CLOUD_API_VERSION": "", "JUJU_CHARM_HTTP_PROXY": "", "JUJU_CHARM_HTTPS_PROXY": "", "JUJU_CHARM_FTP_PROXY": "", "JUJU_CHARM_NO_PROXY": "",
		"PATH": unit + "/tools:" + os.Getenv("PATH"), "HOME": "/home/agent", "USER": "agent",
		"DEBIAN_FRONTEND": "noninteractive", "APT_LISTCHANGES_FRONTEND": "none", "LANG": "C.UTF-8", "TERM": "dumb",
	}
}

// relationEnvironment returns the additional variables of a relation hook.
func relationEnvironment(kind, relation, id, remote string) map[string]string {
	env := map[string]string{
		"JUJU_RELATION": relation, "JUJU_RELATION_ID": id, "JUJU_REMOTE_UNIT": remote + "/0",
		"JUJU_REMOTE_APP": remote, "JUJU_REMOTE_SERVICE": remote, "JUJU_MEMBERS": remote + "/0",
	}
	switch kind {
	case "departed":
		env["JUJU_MEMBERS"], env["JUJU_DEPARTING_UNIT"] = "", remote+"/0"
	case "broken":
		env["JUJU_MEMBERS"], env["JUJU_REMOTE_UNIT"] = "", ""
	}
	return env
}

// readEnvironment reads the environment that a hook wrote to a file. It replaces each well-formed value
// that differs between runs with a word.
func readEnvironment(t *testing.T, path string) map[string]string {
	data, err := os.ReadFile(path)
	if err != nil {
		t.Error(err)
	}
	env := map[string]string{}
	for _, entry := range strings.Split(strings.TrimSuffix(string(data), "\x00"), "\x00") {
		name, value, _ := strings.Cut(entry, "=")
		switch {
		case strings.HasSuffix(name, "SOCKET") || strings.HasSuffix(name, "SOCKET_ADDRESS"):
			if filepath.IsAbs(value) {
				value = "SOCKET"
			}
		case name == "JUJU_CLIENT_ID" || name == "JUJU_CONTEXT_ID":
			if len(value) == 32 {
				value = "CLIENT"
			}
		}
		env[name] = value
	}
	return env
}
