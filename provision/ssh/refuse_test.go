package ssh

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"bijou/provision/provider"
	"bijou/state/constraints"
	"bijou/testscripts/kit/need"
)

// refusal is a start that must fail.
type refusal struct {
	name      string
	arrange   func(r *rig, spec *provider.Spec)
	want      []string // texts in the error
	transient bool
	kept      bool // whether files that existed on the host before remain, and are not checked
}

func config(key, value string) func(*rig, *provider.Spec) {
	return func(r *rig, _ *provider.Spec) { r.env.Config[key] = value }
}

// edit replaces a word in the commands before the host runs them.
func edit(from, to string) func(*rig, *provider.Spec) {
	return func(r *rig, _ *provider.Spec) {
		r.hosts[0].set(func(s *server) {
			s.edit = func(command string) string { return strings.ReplaceAll(command, from, to) }
		})
	}
}

// marked returns a function that writes the mark m to the first host.
func marked(m mark) func(*rig, *provider.Spec) {
	return func(r *rig, _ *provider.Spec) {
		check(r.t, os.Mkdir(r.hosts[0].dir+"/lib", 0o755))
		check(r.t, os.WriteFile(r.hosts[0].dir+"/lib/managed-by.json", []byte(m.String()+"\n"), 0o600))
	}
}

func refusals() []refusal {
	return []refusal{
		{name: "an unknown key", want: []string{"its key ssh-ed25519 SHA256:", "hint: compare the key", "#SHA256:"},
			arrange: func(r *rig, _ *provider.Spec) { r.put("known_hosts", "", 0o600) }},
		{name: "no known hosts", want: []string{"is unknown"},
			arrange: func(r *rig, _ *provider.Spec) { r.env.Config["known-hosts"] = "/nowhere/known_hosts" }},
		{name: "a changed key", want: []string{"HAS A DIFFERENT KEY THAN EXPECTED: ssh-ed25519 SHA256:", "known_hosts:1 has a different key", "ssh-keygen -R"},
			arrange: func(r *rig, _ *provider.Spec) { r.hosts[0].set(func(s *server) { s.key, _ = newKey(r.t) }) }},
		{name: "another fingerprint", want: []string{"HAS A DIFFERENT KEY", "the expected fingerprint is SHA256:other"},
			arrange: func(r *rig, s *provider.Spec) { s.Placement = "root@" + r.hosts[0].address + "#SHA256:other" }},
		{name: "a revoked key", want: []string{"IS REVOKED by", "known_hosts:1"},
			arrange: func(r *rig, _ *provider.Spec) {
				r.put("known_hosts", "@revoked "+knownhosts.Line([]string{r.hosts[0].address}, r.hosts[0].key.PublicKey())+"\n", 0o600)
			}},
		{name: "another user's key", want: []string{"cannot log in to", "the host accepted none of these logins: the key of", "hint: configure the host to accept one"},
			arrange: func(r *rig, _ *provider.Spec) { r.hosts[0].set(func(s *server) { s.accepts = nil }) }},
		{name: "a wrong password", want: []string{"accepted none of these logins: the key of", "the password of"},
			arrange: func(r *rig, _ *provider.Spec) {
				r.hosts[0].set(func(s *server) { s.accepts, s.secret = nil, "right" })
				r.env.Config["password-file"] = r.put("password", "s3cret\n", 0o600)
			}},
		{name: "nothing to log in with", want: []string{"no key and no password given", "hint: name a key"},
			arrange: func(r *rig, _ *provider.Spec) { delete(r.env.Config, "identity"); r.t.Setenv("HOME", r.t.TempDir()) }},
		{name: "a password that others read", want: []string{"ssh.password-file", "other users have access to the file", "run: chmod 600"},
			arrange: func(r *rig, _ *provider.Spec) { r.env.Config["password-file"] = r.put("password", "s3cret", 0o644) }},
		{name: "an empty password", want: []string{"contains no password"},
			arrange: func(r *rig, _ *provider.Spec) { r.env.Config["password-file"] = r.put("password", "\n", 0o600) }},
		{name: "a key that others read", want: []string{"ssh.identity", "chmod 600"},
			arrange: func(r *rig, _ *provider.Spec) { check(r.t, os.Chmod(r.env.Config["identity"], 0o644)) }},
		{name: "a key that is none", want: []string{"ssh.identity", "does not contain a private key"},
			arrange: func(r *rig, _ *provider.Spec) { r.put("id", "nonsense", 0o600) }},
		{name: "a relative path", want: []string{"want an absolute path, or ~/FILE"}, arrange: config("identity", "id")},
		{name: "a full disk", want: []string{"the disk of host", "is full: only 3 MB are free", "hint: free some disk space there"}, arrange: edit(`df -Pm "$place"`, `printf "x\nx 100 97 3 97%% /\n"`)},
		{name: "a disk that is full half-way", want: []string{"cannot copy the binary", "No space left on device", "hint: the host's disk is full"}, kept: true,
			arrange: edit(`cat >"$part"`, `head -c 10 >"$part"; echo "cat: write error: No space left on device" >&2; exit 1`)},
		{name: "a copy that arrives half", want: []string{"cannot copy the binary", "its sha256 is"}, kept: true, arrange: edit(`cat >"$part"`, `head -c 10 >"$part"`)},
		{name: "another architecture", want: []string{"has the architecture s390x, but the model's binary is for"}, arrange: edit("uname -m", "echo s390x")},
		{name: "another environment's host", kept: true, transient: true, arrange: marked(mark{"e0b2", "prod", "7", "e0b2-7"}),
			want: []string{"is already managed: it is machine 7 of model \"prod\" (uuid e0b2)", "juju remove-machine -e prod 7", "managed-by.json"}},
		{name: "another machine's host", kept: true, transient: true, arrange: marked(mark{"e0a1", "test", "7", "e0a1-7"}), want: []string{"is already machine 7", "juju deploy --to 7"}},
		{name: "a mark that is none", kept: true, arrange: marked(mark{"e0a1", "$(rm -rf /)", "7", ""}), want: []string{"cannot read the host's mark"}},
		{name: "a constraint that it does not satisfy", want: []string{"lacks: mem=1073741824M tags=ssd"},
			arrange: func(r *rig, s *provider.Spec) {
				var err error
				s.Constraints, err = constraints.Parse("mem=1024T cpu-cores=1 tags=ssd")
				check(r.t, err)
			}},
		{name: "a host that is away", transient: true, want: []string{"cannot reach host \"root@127.0.0.1:1\"", "connection refused"},
			arrange: func(_ *rig, s *provider.Spec) { s.Placement = "root@127.0.0.1:1" }},
		{name: "a host that is none", want: []string{"want USER@HOST"}, arrange: func(_ *rig, s *provider.Spec) { s.Placement = "h1" }},
		{name: "no host at all", want: []string{"there are no hosts to choose from", "juju add-machine ssh:USER@HOST"}, arrange: config("pool", "")},
		{name: "a pool that is none", want: []string{"cannot read ssh.pool", "unknown key \"adress\""}, arrange: config("pool", "[{adress: root@h}]")},
		{name: "a state in a file", want: []string{"other hosts cannot reach it", "hint: move the state to an etcd", "juju migrate-state"},
			arrange: func(r *rig, _ *provider.Spec) { r.put("environment.yaml", "state: sqlite:/x\ntools: 1-x\n", 0o600) }},
	}
}

// TestStartRefuses checks that impossible starts are refused with a useful message and leave nothing
// behind.
func TestStartRefuses(t *testing.T) {
	for _, c := range refusals() {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 1)
			s := spec("1", "")
			c.arrange(r, &s)
			_, err := r.Start(t.Context(), s, io.Discard)
			if err == nil {
				t.Fatal("it was started")
			}
			for _, want := range append(c.want, "cannot start machine 1: ") {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("no %q in: %v", want, err)
				}
			}
			if strings.Contains(err.Error(), "s3cret") {
				t.Errorf("it tells the password: %v", err)
			}
			if errors.Is(err, provider.ErrTransient) != c.transient {
				t.Errorf("transient is %v: %v", !c.transient, err)
			}
			wantNothing(t, r, c.kept)
		})
	}
}

// wantNothing checks that no trace of a start remains.
func wantNothing(t *testing.T, r *rig, kept bool) {
	t.Helper()
	parts, _ := filepath.Glob(r.hosts[0].dir + "/lib/e0a1/*/*/*.part-*")
	records, _ := filepath.Glob(r.dir + "/ssh/machines/*")
	if _, err := os.Stat(r.hosts[0].dir + "/lib"); err == nil && !kept || len(parts) > 0 {
		t.Errorf("the host has %v, %v", err, parts)
	}
	if links, _ := filepath.Glob(r.hosts[0].dir + "/juju/tools/*/jujud"); len(links) > 0 && !kept {
		t.Errorf("links are left: %v", links)
	}
	if links, _ := filepath.Glob(r.hosts[0].dir + "/juju-bin/*"); len(links) > 0 && !kept {
		t.Errorf("links are left: %v", links)
	}
	if len(records) > 0 && !kept {
		t.Errorf("records are left: %v", records)
	}
}

// TestVouched checks logins with a host's fingerprint and with a password.
func TestVouched(t *testing.T) {
	need.Whole(t)
	for name, arrange := range map[string]func(r *rig, s *provider.Spec){
		"a fingerprint": func(r *rig, s *provider.Spec) {
			r.put("known_hosts", "", 0o600)
			s.Placement = "root@" + r.hosts[0].address + "#" + ssh.FingerprintSHA256(r.hosts[0].key.PublicKey())
		},
		"a password": func(r *rig, s *provider.Spec) {
			r.hosts[0].set(func(s *server) { s.accepts, s.secret = nil, "s3cret" })
			r.env.Config["password-file"] = r.put("password", "s3cret\n", 0o600)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 1)
			s := spec("1", "")
			arrange(r, &s)
			i, err := r.Start(t.Context(), s, io.Discard)
			check(t, err)
			if found := r.instances(); len(found) != 1 || found[0] != i {
				t.Errorf("instances %+v, want %+v", found, i)
			}
			check(t, r.Stop(t.Context(), i.ID))
			wantNothing(t, r, false)
		})
	}
}
