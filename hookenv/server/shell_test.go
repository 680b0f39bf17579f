package server_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/hookapi"
)

// bash runs a script with the tools as symlinks on the PATH, as in a hook.
func (h hook) bash(t *testing.T, script string) string {
	t.Helper()
	tools := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"relation-get", "relation-set", "relation-list", "juju-log"} {
		if err := os.Symlink(self, filepath.Join(tools, name)); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", script)
	cmd.Dir = h.directory
	cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"),
		"JUJU_SOCKET="+h.socket, "JUJU_CLIENT_ID="+h.id, "GORACE=atexit_sleep_ms=0")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func TestScripts(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash")
	}
	for _, tt := range []struct{ name, script, want string }{
		{"the caller's files", `relation-set --file <(echo "a: 1"); relation-get a wordpress/0`, "1\n"},
		{"a loop keeps its input", `printf 'x=1\ny=2\n' | while read -r pair; do relation-set "$pair"; done; relation-get --format=shell - wordpress/0`, "VAR_private_address='10.0.3.7'\nVAR_x='1'\nVAR_y='2'\n"},
		{"a here document", "relation-set <<END\na: one two\nEND\nrelation-get a wordpress/0", "one two\n"},
		{"a reader that leaves", `relation-get - | head -1`, "password: s3cr3t\n"},
		{"the caller's stdout", `relation-get user -o /dev/stdout | tr a-z A-Z`, "ROOT\n"},
		{"a descriptor by its number", `exec 3>out; echo before >&3; relation-get user -o /dev/fd/3; relation-get user -o /proc/self/fd/3; echo after >&3; cat out`, "before\nroot\nroot\nafter\n"},
		{"stdout by its number", `echo before >out; relation-get user -o /dev/fd/1 >>out; cat out`, "before\nroot\n"},
		{"a file by its descriptor's number", `echo "a: 1" >in; relation-set --file /dev/fd/4 4<in; relation-get a wordpress/0`, "1\n"},
		{"a program as a file", `relation-get user -o >(tr a-z A-Z >shouted); until [ -s shouted ]; do :; done; cat shouted`, "ROOT\n"},
		{"a descriptor that is not there", `relation-get user -o /dev/fd/9 || echo $?`, "ERROR write /dev/fd/9: bad file descriptor\n1\n"},
		{"a descriptor of the tool's own", `relation-get user -o /dev/fd/3 3>&- || echo $?`, "ERROR write /dev/fd/3: bad file descriptor\n1\n"},
		{"a loop around many tools", `printf 'a\nb\nc\n' | while read -r x; do relation-get user; relation-list; juju-log "$x"; relation-set "$x=1"; done`, "root\nmysql/0\nmysql/1\nroot\nmysql/0\nmysql/1\nroot\nmysql/0\nmysql/1\n"},
		{"closed stdin", `relation-set a=1 <&-; relation-set <&-; relation-get a wordpress/0`, "1\n"},
		{"closed stdin asked for", `relation-set --file - a=1 <&-; relation-get a wordpress/0`, "1\n"},
		{"closed stdout and stderr", `relation-get user >&-; relation-get user 2>&-; relation-get nope/x 2>&- || echo $?`, "root\n"},
		{"a reader of errors that has left", `(relation-get -r 9 2>&1 >/dev/null || echo $? >exit) | true; cat exit`, "2\n"},
		{"a full disk", `relation-get user >/dev/full || echo $?`, "ERROR write /dev/stdout: no space left on device\n1\n"},
		{"members in a loop", `for unit in $(relation-list -r website); do relation-get -r website private-address "$unit"; done`, "10.0.3.20\n"},
		{"a directory that is gone", `mkdir gone; cd gone; rmdir ../gone; relation-get user`, "root\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, _ := modernHook(t)
			if diff := cmp.Diff(tt.want, h.bash(t, tt.script)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestWalkTheTopology finds every unit from one unit, only with relation-list.
func TestWalkTheTopology(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash")
	}
	_, r := inHook(t, hookapi.Classic)
	got := serveHook(t, r, t.TempDir()).bash(t, `
		declare -A seen=([wordpress/0]=1)
		queue=(wordpress/0)
		while ((${#queue[@]})); do
			unit=${queue[0]}; queue=("${queue[@]:1}")
			for id in $(relation-list --type=relation-id "$unit"); do
				for next in $(relation-list --relation-id="$id" "$unit"); do
					[[ -n ${seen[$next]:-} ]] || { seen[$next]=1; queue+=("$next"); }
				done
			done
		done
		printf '%s\n' "${!seen[@]}" | sort -V`)
	want := "backup/0\nhaproxy/0\nmysql/0\nmysql/1\nwordpress/0\nwordpress/1\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
