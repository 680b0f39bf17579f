package systemd

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/multicall/home"
)

// newEnvironment returns an environment in a directory whose name contains every character that systemd
// would expand.
func newEnvironment(t *testing.T) home.Environment {
	dir := filepath.Join(t.TempDir(), `a b%n"$x`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return home.Environment{Dir: dir, Record: home.Record{Name: "x", Tools: "1-2"}}
}

func TestUnitsQuoteTheFolder(t *testing.T) {
	e := newEnvironment(t)
	units, err := Units(e)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := AgentUnits(e, "7")
	if err != nil {
		t.Fatal(err)
	}
	units = append(units, agent...)
	for i, want := range []struct{ name, command string }{
		{"bijou-machine-x.service", "/machine-agent\" --machine 0 --env \""},
		{"bijou-unit-x@.service", "/unit-agent\" --unit %I --env \""},
		{"bijou-provisioner-x.service", "/provisioner\" --env \""},
		{"bijou-machine-x@7.service", "/machine-agent\" --machine 7 --env \""},
	} {
		u := units[i]
		quoted := filepath.Dir(e.Dir) + `/a b%%n\"$$x`
		command := "\nExecStart=\"" + quoted + "/tools/1-2" + want.command + quoted + "\"\n"
		if u.Name != want.name || !strings.Contains(u.Text, command) {
			t.Errorf("%s has not\n%s but\n%s", u.Name, command, u.Text)
		}
		if !strings.Contains(u.Text, "\nConditionPathExists="+filepath.Dir(e.Dir)+"/a b%%n\"$x/environment.yaml\n") {
			t.Errorf("%s looks for another file:\n%s", u.Name, u.Text)
		}
	}
	e.Dir += "\n"
	if units, err := Units(e); err == nil {
		t.Errorf("a folder with a line break in its name: %v", units)
	}
}

func TestInstallLeavesOthersFilesAlone(t *testing.T) {
	e, dir := newEnvironment(t), t.TempDir()
	units, err := Units(e)
	if err != nil {
		t.Fatal(err)
	}
	u := units[0]
	path := filepath.Join(dir, u.Name)
	other := strings.Replace(u.Text, madeByPrefix+e.Dir, madeByPrefix+"/elsewhere", 1)
	for _, step := range []struct {
		name    string
		before  string // the content of the file; "" does not change it
		force   bool
		changed bool
		err     error
	}{
		{"there is none", "", false, true, nil},
		{"once more", "", false, false, nil},
		{"an older one of ours", madeByPrefix + e.Dir + "\nold\n", false, true, nil},
		{"another environment's", other, false, false, ErrForeign},
		{"an operator's", "[Unit]\n", false, false, ErrForeign},
		{"by force", "[Unit]\n", true, true, nil},
	} {
		if step.before != "" {
			if err := os.WriteFile(path, []byte(step.before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		changed, err := Install(dir, u, e.Dir, step.force)
		if changed != step.changed || !errors.Is(err, step.err) {
			t.Errorf("%s: changed %v, error %v; want %v, %v", step.name, changed, err, step.changed, step.err)
		}
		want := u.Text
		if step.err != nil {
			want = step.before
		}
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s: the file has %q, %v", step.name, data, err)
		}
	}
}

// TestNecosUnits checks neco's unit files, and that systemd can parse them.
func TestNecosUnits(t *testing.T) {
	dir := t.TempDir()
	units, err := NecoUnits(dir)
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for i, name := range []string{"neco-worker", "neco-updater"} {
		u := units[i]
		if command := "\nExecStart=\"" + dir + "/" + name + "\"\n"; u.Name != name+".service" || !strings.Contains(u.Text, command) {
			t.Errorf("%s has not\n%s but\n%s", u.Name, command, u.Text)
		}
		if _, err := Install(dir, u, NecoOwner, false); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
		files = append(files, filepath.Join(dir, u.Name))
	}
	if units, err := NecoUnits(dir + "\n"); err == nil {
		t.Errorf("a folder with a line break in its name: %v", units)
	}
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not here: nobody has read the unit files")
	}
	out, err := exec.Command(analyze, append([]string{"verify", "--man=no"}, files...)...).CombinedOutput()
	for line := range strings.Lines(string(out)) { // systemd also prints messages about other units
		newer := strings.Contains(line, "RestartSteps") || strings.Contains(line, "RestartMaxDelaySec")
		if strings.Contains(line, dir) && !newer {
			t.Errorf("systemd-analyze verify: %s", line)
		}
	}
	if err != nil {
		t.Errorf("systemd-analyze verify: %v\n%s", err, out)
	}
}

func TestServiceOf(t *testing.T) {
	if s := ServiceOf(os.Getpid()); s != "" {
		t.Errorf("this test is the service %q", s)
	}
}
