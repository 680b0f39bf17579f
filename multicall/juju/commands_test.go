package juju

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state"
	"bijou/state/keys"
)

// status runs juju status with YAML output.
func (w *testEnv) status(args ...string) string {
	return w.mustRun(append([]string{"status", "--format", "yaml"}, args...)...)
}

func TestExpose(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("deploy", w.writeCharm("trivial", ""))
	for _, tt := range []struct{ command, want string }{
		{"expose", "exposed: true"}, {"expose", "exposed: true"}, {"unexpose", "exposed: false"}, {"unexpose", "exposed: false"},
	} {
		w.mustRun(tt.command, "trivial")
		if got := w.status(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %q in:\n%s", tt.command, tt.want, got)
		}
	}
	w.mustFail(1, "nosuch", "expose", "nosuch")
	w.mustFail(1, "nosuch", "unexpose", "nosuch")
	w.mustFail(2, "application", "expose")
}

func TestUnset(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("deploy", w.writeCharm("trivial", ""))
	w.mustRun("set", "trivial", "title=Other")
	w.mustFail(1, `unknown option "nosuch"`, "unset", "trivial", "title", "nosuch")
	if got := w.mustRun("get", "trivial"); !strings.Contains(got, "value: Other") {
		t.Errorf("a refused unset has unset:\n%s", got)
	}
	w.mustRun("unset", "trivial", "title")
	w.mustRun("unset", "trivial", "title", "title")
	if got := w.mustRun("get", "trivial"); !strings.Contains(got, "value: Hello") || !strings.Contains(got, "default: true") {
		t.Errorf("options:\n%s", got)
	}
	w.mustFail(1, "nosuch", "unset", "nosuch", "title")
	w.mustFail(2, "option", "unset", "trivial")
}

func TestAddMachine(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	if got := w.mustRun("add-machine"); got != "1\n" {
		t.Errorf("machine %q", got)
	}
	if got := w.mustRun("add-machine", "-n", "11", "--series", "noble"); !strings.HasPrefix(got, "2\n") || !strings.HasSuffix(got, "\n12\n") {
		t.Errorf("machines %q", got)
	}
	w.mustFail(2, "0 machines", "add-machine", "-n", "0")
	w.mustFail(1, `machines of this model cannot have series "jammy"`, "add-machine", "--series", "jammy")
	w.mustFail(2, "No Series", "add-machine", "--series", "No Series")
	if got := w.mustRun("machines"); strings.Count(got, "noble") != 13 || strings.Count(got, "pending") != 13 {
		t.Errorf("machines:\n%s", got)
	}
	w.mustRun("deploy", w.writeCharm("trivial", ""), "--to", "1")
	w.mustFail(1, "trivial/0", "destroy-machine", "1")
	w.mustFail(1, "machine 0", "destroy-machine", "0", "--force")
	w.mustFail(1, "99", "destroy-machine", "99")
	w.mustRun("destroy-machine", "--force", "1")
	w.mustRun("destroy-machine", "2", "3")
	if got := w.mustRun("machines"); strings.Count(got, "\n") != 1+13-3 {
		t.Errorf("machines:\n%s", got)
	}
}

func TestEnvironmentSettings(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("set-environment", "update-status-interval=90s", "hook-concurrency=3")
	for _, tt := range []struct{ key, want string }{
		{"update-status-interval", "90s"}, {"hook-concurrency", "3"}, {"automatically-retry-hooks", "true"}, {"name", "default"},
	} {
		t.Run(tt.key, func(t *testing.T) {
			if got := w.mustRun("get-environment", tt.key); got != tt.want+"\n" {
				t.Errorf("%s is %q", tt.key, got)
			}
		})
	}
	w.mustRun("set-environment", "update-status-interval=", "hook-concurrency=")
	if got := w.mustRun("get-environment"); !strings.Contains(got, "update-status-interval: 5m\n") || !strings.Contains(got, "hook-concurrency: default\n") ||
		!strings.Contains(got, "automatically-retry-hooks: true\n") {
		t.Errorf("values:\n%s", got)
	}
	w.mustFail(1, "the settings are: allow-other-series, automatically-retry-hooks, charmhub-url, default-series,", "get-environment", "nosuch")
	w.mustFail(2, "the settings are: allow-other-series, automatically-retry-hooks, charmhub-url, hook-concurrency, hook-timeout, juju-ftp-proxy,", "set-environment", "nosuch=1")
	w.mustFail(2, "bootstrap decides it", "set-environment", "name=other")
	w.mustFail(2, "want a duration", "set-environment", "update-status-interval=soon")
	w.mustFail(2, "want true or false", "set-environment", "hook-concurrency=2", "automatically-retry-hooks=yes")
	w.mustFail(2, "key=value", "set-environment", "hook-concurrency")
	if got := w.mustRun("get-environment", "hook-concurrency"); got != "default\n" {
		t.Errorf("a refused change has changed %q", got)
	}
}

// TestUnknownSettings checks that settings of a newer binary are kept, shown and removable, but cannot
// be set.
func TestUnknownSettings(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	e, err := w.home.Environment("default")
	if err != nil {
		t.Fatal(err)
	}
	s, err := state.Open(t.Context(), e.State)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	err = s.Update(t.Context(), func(tx *state.Tx) error {
		e, err := tx.Environment()
		if err != nil {
			return err
		}
		e.Config = map[string]string{"colour": "red"}
		return tx.Keys().Put(keys.Environment, e)
	})
	if err != nil {
		t.Fatal(err)
	}

	w.mustRun("set-environment", "hook-concurrency=3")
	w.mustFail(2, `unknown model setting "colour"`, "set-environment", "colour=blue")
	if _, out, errs := w.run("", "get-environment"); !strings.Contains(out, "\ncolour: red\n") || !strings.Contains(errs, "stored, but unknown to this version: colour") {
		t.Errorf("got %s%s", out, errs)
	}
	if got := w.mustRun("get-environment", "colour"); got != "red\n" {
		t.Errorf("got %s", got)
	}
	if got := w.mustRun("model-config"); !strings.Contains(got, "colour:\n    Source: unknown\n    Value: red\n") {
		t.Errorf("got %s", got)
	}
	w.mustRun("set-environment", "colour=")
	if got := w.mustRun("get-environment"); strings.Contains(got, "colour") || !strings.Contains(got, "provisioner-harvest-mode: destroyed\n") {
		t.Errorf("got %s", got)
	}
}

func TestSwitch(t *testing.T) {
	w := newTestEnv(t)
	w.mustFail(1, "hint: to create a model: juju bootstrap", "switch")
	w.mustRun("bootstrap", "-e", "one")
	w.mustRun("bootstrap", "-e", "two")
	w.mustFail(1, `"nosuch"`, "switch", "nosuch")
	w.mustFail(2, "../one", "switch", "../one")
	w.mustRun("switch", "one")
	t.Setenv("JUJU_ENV", "two")
	if code, _, errs := w.run("", "switch", "one"); code != 0 || !strings.Contains(errs, "JUJU_ENV=two takes precedence over the chosen model") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if got := w.mustRun("switch"); got != "two\n" {
		t.Errorf("in use is %q", got)
	}
}

func TestStatusOfWhatIsNotThere(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustFail(1, `no application, unit, machine or status matches "*"`, "status", "*")
	w.mustRun("deploy", w.writeCharm("trivial", ""))
	w.mustRun("status", "*")
	w.mustFail(1, `no application, unit, machine or status matches "x", "y/*"`, "status", "x", "y/*")
	w.mustFail(2, "not a pattern", "status", "[")
	code, out, errs := w.run("", "status", "trivial", "x")
	if code != 1 || !strings.Contains(out, "trivial/0") || !strings.Contains(errs, `matches "x"`) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestStatusIntoFiles(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	dir := t.TempDir()
	file, link := filepath.Join(dir, "status"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("status", link); err != nil {
		t.Fatal(err)
	}
	if got := w.mustRun("status", "-o", link, "--format", "json"); got != "" {
		t.Errorf("printed %q", got)
	}
	data, err := os.ReadFile(file)
	info, _ := os.Lstat(link)
	mode, _ := os.Stat(file)
	if err != nil || !strings.HasPrefix(string(data), `{"model"`) || info.Mode().Type() != os.ModeSymlink || mode.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v, %v: %s", err, info.Mode(), mode.Mode(), data)
	}
	w.mustRun("status", "-o", filepath.Join(dir, "new"))
	w.mustRun("status", "-o", "/dev/null")
	w.mustFail(1, "nosuch", "status", "-o", filepath.Join(dir, "nosuch", "status"))
	w.mustFail(1, dir, "status", "-o", dir)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind %v", left)
	}
}

// TestWarningOfStoppedModel checks that a command that opens the model several times warns once that its process is
// not running.
func TestWarningOfStoppedModel(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("deploy", w.writeCharm("trivial", ""))
	w.mustRun("stop")
	for _, args := range [][]string{{"set-environment", "hook-timeout=1m"}, {"config", "trivial"}, {"expose", "trivial"}, {"set", "trivial", "title=x"}} {
		t.Run(args[0], func(t *testing.T) {
			_, _, stderr := w.run("", args...)
			if n := strings.Count(stderr, "is not running, so machine 0 and its provisioner will not act"); n != 1 {
				t.Errorf("it warned %d times:\n%s", n, stderr)
			}
		})
	}
}
