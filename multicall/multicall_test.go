package multicall

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/hookenv/client/wire"
	"bijou/multicall/applet"
	"bijou/multicall/console"
)

// runApplet calls an applet and captures its output.
func runApplet(t *testing.T, name string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	a, ok := findApplet(name)
	if !ok {
		t.Fatalf("there is no applet %q", name)
	}
	var out, err bytes.Buffer
	code = a.Run(applet.Call{Name: name, Args: args, Streams: console.Streams{In: strings.NewReader(""), Out: &out, Err: &err}, Applets: appletNames()})
	return code, out.String(), err.String()
}

func TestNamesAreUnique(t *testing.T) {
	all := appletNames()
	if want := slices.Compact(slices.Clone(all)); len(want) != len(all) {
		t.Errorf("a name stands twice: %v", all)
	}
}

// TestThinClientKnowsTheTools checks that the thin client handles exactly the names in the table. Inside
// hooks, a tool whose name was missing would take the ordinary path.
func TestThinClientKnowsTheTools(t *testing.T) {
	want, got := slices.Sorted(slices.Values(hookToolNames())), slices.Sorted(slices.Values(strings.Fields(wire.ToolNames)))
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestEveryAppletExplainsItself(t *testing.T) {
	for _, name := range appletNames() {
		code, out, errs := runApplet(t, name, "--help")
		if code != console.ExitOK || errs != "" || !strings.Contains(out, "xample") {
			t.Errorf("%s --help: exit %d, stderr %q, stdout %q", name, code, errs, out)
		}
		if code, helped, _ := runApplet(t, "bijou", "help", name); code != console.ExitOK || helped != out {
			t.Errorf("bijou help %s: exit %d, stdout %q, want %q", name, code, helped, out)
		}
	}
}

func TestEveryJujuCommandExplainsItself(t *testing.T) {
	for _, command := range strings.Fields(`bootstrap start destroy-environment environments switch deploy add-unit
		add-relation destroy-relation remove-unit destroy-service destroy-machine set get set-environment
		get-environment status machines do debug-log resolved remove-relation destroy-unit remove-service
		remove-application relate`) {
		code, out, errs := runApplet(t, "juju", command, "--help")
		if code != console.ExitOK || errs != "" || !strings.Contains(out, "Examples:") {
			t.Errorf("juju %s --help: exit %d, stderr %q, stdout %q", command, code, errs, out)
		}
	}
}

// TestFormerNames checks that the names of Juju's first release are those of the same commands.
func TestFormerNames(t *testing.T) {
	for former, name := range map[string]string{
		"add-relation":        "integrate",
		"cancel-action":       "cancel-task",
		"destroy-environment": "destroy-model",
		"destroy-machine":     "remove-machine",
		"destroy-relation":    "remove-relation",
		"destroy-service":     "remove-application",
		"environments":        "models",
		"get":                 "config",
		"get-constraints":     "constraints",
		"show-action-output":  "show-operation",
		"show-action-status":  "operations",
		"upgrade-charm":       "refresh",
		"upgrade-juju":        "upgrade-model",
	} {
		t.Run(former, func(t *testing.T) {
			_, want, _ := runApplet(t, "juju", name, "--help")
			if !strings.HasPrefix(want, "Usage: juju "+name+" (") || !strings.Contains(want, "Examples:") {
				t.Errorf("juju %s --help: %s", name, want)
			}
			for _, line := range [][]string{{former, "--help"}, {"help", former}, {"-e", "x", former, "--help"}} {
				code, out, errs := runApplet(t, "juju", line...)
				if code != console.ExitOK || errs != "" || out != want {
					t.Errorf("juju %q: exit %d, stderr %q, stdout %q", line, code, errs, out)
				}
			}
		})
	}
}

func TestBijou(t *testing.T) {
	tests := []struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		{nil, 0, "bijou " + applet.Version, ""},
		{[]string{"version"}, 0, applet.Version, ""},
		{[]string{"--list"}, 0, "\njuju\n", ""},
		{[]string{"jujud", "version"}, 0, "3.6.27-bijou\n", ""},
		{[]string{"bijou", "version"}, 0, applet.Version, ""},
		{[]string{"relation-gte"}, 127, "", "error: there is no applet \"relation-gte\"\nhint: did you mean relation-get?\n"},
		{[]string{"help", "relation-gte"}, 127, "", "did you mean relation-get?"},
		{[]string{"help", "install"}, 0, "--force", ""},
		{[]string{"--bogus"}, 2, "", "error: "},
		{[]string{"version", "extra"}, 2, "", "error: "},
	}
	for _, tt := range tests {
		code, out, errs := runApplet(t, "bijou", tt.args...)
		if code != tt.code || !strings.Contains(out, tt.stdout) || !strings.Contains(errs, tt.stderr) {
			t.Errorf("bijou %q: exit %d, stdout %q, stderr %q", tt.args, code, out, errs)
		}
	}
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "bin")
	all := fmt.Sprintf("(%d new)", len(appletNames()))
	code, out, errs := runApplet(t, "bijou", "install", "--dir", dir)
	if code != 0 || !strings.Contains(out, all) || strings.Count(out, "\n") != 3 {
		t.Fatalf("first install: exit %d, %q, %q", code, out, errs)
	}

	mine := filepath.Join(dir, "juju")
	if err := os.Remove(mine); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "jujud")
	if err := os.Remove(dangling); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/nonexistent/bijou", dangling); err != nil {
		t.Fatal(err)
	}

	code, _, errs = runApplet(t, "bijou", "install", "--dir", dir)
	if code != 1 || !strings.Contains(errs, "juju") || !strings.Contains(errs, "hint: --force") {
		t.Errorf("over another file: exit %d, stderr %q", code, errs)
	}
	if to, err := os.Readlink(dangling); to == "/nonexistent/bijou" || err != nil {
		t.Errorf("a dangling link of ours still leads to %q: %v", to, err)
	}
	if data, err := os.ReadFile(mine); string(data) != "mine" {
		t.Errorf("the other file was changed: %q, %v", data, err)
	}
	if code, out, errs := runApplet(t, "bijou", "install", "--dir", dir, "--force"); code != 0 || !strings.Contains(out, "1 replaced other files") {
		t.Errorf("--force: exit %d, %q, %q", code, out, errs)
	}
}

func TestDaemonsRefuse(t *testing.T) {
	tests := []struct {
		applet string
		args   []string
		code   int
		stderr string
	}{
		{"machine-agent", nil, 2, "machine"},
		{"machine-agent", []string{"--machine", "0"}, 2, "hint: give --env DIR"},
		{"machine-agent", []string{"--machine", "0", "--env", "/nonexistent"}, 1, "there is no model"},
		{"machine-agent", []string{"--machine", "0", "--state", "sqlite:/nonexistent/x.db"}, 2, "--dir"},
		{"unit-agent", []string{"--unit", "x/0", "--state", "sqlite:/nonexistent/x.db"}, 1, "no store"},
		{"provisioner", []string{"--env", "/nonexistent"}, 1, "there is no model"},
	}
	for _, tt := range tests {
		code, _, errs := runApplet(t, tt.applet, tt.args...)
		if code != tt.code || !strings.Contains(errs, tt.stderr) {
			t.Errorf("%s %q: exit %d, stderr %q", tt.applet, tt.args, code, errs)
		}
	}
}

// TestUnknownNames checks that a call through a symlink with an unknown name is an error, with or without
// arguments. A renamed binary acts as bijou.
func TestUnknownNames(t *testing.T) {
	dir := t.TempDir()
	link, renamed := filepath.Join(dir, "relation-gte"), filepath.Join(dir, "a.out")
	if err := errors.Join(os.Symlink("/proc/self/exe", link), os.WriteFile(renamed, nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		argv []string
		want int
	}{
		{[]string{link}, console.ExitUnknown}, {[]string{link, "x"}, console.ExitUnknown},
		{[]string{renamed}, console.ExitOK}, {[]string{renamed, "--list"}, console.ExitOK}, {[]string{renamed, "x"}, console.ExitUnknown},
	} {
		if got := Main(tt.argv, Options{}); got != tt.want {
			t.Errorf("%q: exit %d, want %d", tt.argv, got, tt.want)
		}
	}
}
