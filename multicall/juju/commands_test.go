package juju

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// exposed and the like: one word of status's yaml.
func (w *world) status(args ...string) string {
	return w.must(append([]string{"status", "--format", "yaml"}, args...)...)
}

func TestExpose(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	w.must("deploy", w.charm("trivial", ""))
	for _, tt := range []struct{ command, want string }{
		{"expose", "exposed: true"}, {"expose", "exposed: true"}, {"unexpose", "exposed: false"}, {"unexpose", "exposed: false"},
	} {
		w.must(tt.command, "trivial")
		if got := w.status(); !strings.Contains(got, tt.want) {
			t.Errorf("%s: want %q in:\n%s", tt.command, tt.want, got)
		}
	}
	w.refuse(1, "nosuch", "expose", "nosuch")
	w.refuse(1, "nosuch", "unexpose", "nosuch")
	w.refuse(2, "service", "expose")
}

func TestUnset(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	w.must("deploy", w.charm("trivial", ""))
	w.must("set", "trivial", "title=Other")
	w.refuse(1, `unknown option "nosuch"`, "unset", "trivial", "title", "nosuch")
	if got := w.must("get", "trivial"); !strings.Contains(got, "value: Other") {
		t.Errorf("a refused unset has unset:\n%s", got)
	}
	w.must("unset", "trivial", "title")
	w.must("unset", "trivial", "title", "title")
	if got := w.must("get", "trivial"); !strings.Contains(got, "value: Hello") || !strings.Contains(got, "default: true") {
		t.Errorf("options:\n%s", got)
	}
	w.refuse(1, "nosuch", "unset", "nosuch", "title")
	w.refuse(2, "option", "unset", "trivial")
}

func TestAddMachine(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	if got := w.must("add-machine"); got != "1\n" {
		t.Errorf("machine %q", got)
	}
	if got := w.must("add-machine", "-n", "11", "--series", "noble"); !strings.HasPrefix(got, "2\n") || !strings.HasSuffix(got, "\n12\n") {
		t.Errorf("machines %q", got)
	}
	w.refuse(2, "0 machines", "add-machine", "-n", "0")
	w.refuse(1, `no machines of series "jammy" here`, "add-machine", "--series", "jammy")
	w.refuse(2, "No Series", "add-machine", "--series", "No Series")
	if got := w.must("machines"); strings.Count(got, "noble") != 13 || strings.Count(got, "pending") != 13 {
		t.Errorf("machines:\n%s", got)
	}
	w.must("deploy", w.charm("trivial", ""), "--to", "1")
	w.refuse(1, "trivial/0", "destroy-machine", "1")
	w.refuse(1, "machine 0", "destroy-machine", "0", "--force")
	w.refuse(1, "99", "destroy-machine", "99")
	w.must("destroy-machine", "--force", "1")
	w.must("destroy-machine", "2", "3")
	if got := w.must("machines"); strings.Count(got, "\n") != 1+13-3 {
		t.Errorf("machines:\n%s", got)
	}
}

func TestEnvironmentSettings(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	w.must("set-environment", "update-status-interval=90s", "hook-concurrency=3")
	for _, tt := range []struct{ key, want string }{
		{"update-status-interval", "90s"}, {"hook-concurrency", "3"}, {"automatically-retry-hooks", "true"}, {"name", "default"},
	} {
		if got := w.must("get-environment", tt.key); got != tt.want+"\n" {
			t.Errorf("%s is %q", tt.key, got)
		}
	}
	w.must("set-environment", "update-status-interval=", "hook-concurrency=")
	if got := w.must("get-environment"); !strings.Contains(got, "update-status-interval: 5m\n") || !strings.Contains(got, "hook-concurrency: default\n") ||
		!strings.Contains(got, "automatically-retry-hooks: true\n") {
		t.Errorf("values:\n%s", got)
	}
	w.refuse(1, "there are allow-other-series, automatically-retry-hooks, default-series,", "get-environment", "nosuch")
	w.refuse(2, "there are allow-other-series, automatically-retry-hooks, hook-concurrency", "set-environment", "nosuch=1")
	w.refuse(2, "bootstrap has decided it", "set-environment", "name=other")
	w.refuse(2, "want a duration", "set-environment", "update-status-interval=soon")
	w.refuse(2, "want true or false", "set-environment", "hook-concurrency=2", "automatically-retry-hooks=yes")
	w.refuse(2, "key=value", "set-environment", "hook-concurrency")
	if got := w.must("get-environment", "hook-concurrency"); got != "default\n" {
		t.Errorf("a refused change has changed %q", got)
	}
}

func TestSwitch(t *testing.T) {
	w := newWorld(t)
	w.refuse(1, "hint: juju bootstrap", "switch")
	w.must("bootstrap", "-e", "one")
	w.must("bootstrap", "-e", "two")
	w.refuse(1, `"nosuch"`, "switch", "nosuch")
	w.refuse(2, "../one", "switch", "../one")
	w.must("switch", "one")
	t.Setenv("JUJU_ENV", "two")
	if code, _, errs := w.juju("", "switch", "one"); code != 0 || !strings.Contains(errs, "JUJU_ENV=two goes before it") {
		t.Errorf("exit %d, %q", code, errs)
	}
	if got := w.must("switch"); got != "two\n" {
		t.Errorf("in use is %q", got)
	}
}

func TestStatusOfWhatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	w.refuse(1, `no service or unit matches "*"`, "status", "*")
	w.must("deploy", w.charm("trivial", ""))
	w.must("status", "*")
	w.refuse(1, `no service or unit matches "x", "y/*"`, "status", "x", "y/*")
	w.refuse(2, "not a pattern", "status", "[")
	code, out, errs := w.juju("", "status", "trivial", "x")
	if code != 1 || !strings.Contains(out, "trivial/0") || !strings.Contains(errs, `matches "x"`) {
		t.Errorf("exit %d, %q, %q", code, out, errs)
	}
}

func TestStatusIntoFiles(t *testing.T) {
	w := newWorld(t)
	w.must("bootstrap")
	dir := t.TempDir()
	file, link := filepath.Join(dir, "status"), filepath.Join(dir, "link")
	if err := os.WriteFile(file, []byte("old"), 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("status", link); err != nil {
		t.Fatal(err)
	}
	if got := w.must("status", "-o", link, "--format", "json"); got != "" {
		t.Errorf("printed %q", got)
	}
	data, err := os.ReadFile(file)
	info, _ := os.Lstat(link)
	mode, _ := os.Stat(file)
	if err != nil || !strings.HasPrefix(string(data), `{"machines"`) || info.Mode().Type() != os.ModeSymlink || mode.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v, %v: %s", err, info.Mode(), mode.Mode(), data)
	}
	w.must("status", "-o", filepath.Join(dir, "new"))
	w.must("status", "-o", "/dev/null")
	w.refuse(1, "nosuch", "status", "-o", filepath.Join(dir, "nosuch", "status"))
	w.refuse(1, dir, "status", "-o", dir)
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind %v", left)
	}
}
