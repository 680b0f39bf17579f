package systemd

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/multicall/home"
)

// environment is one in a folder whose name has all that systemd would expand.
func environment(t *testing.T) home.Environment {
	dir := filepath.Join(t.TempDir(), `a b%n"$x`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return home.Environment{Dir: dir, Record: home.Record{Name: "x", Tools: "1-2"}}
}

func TestUnitsQuoteTheFolder(t *testing.T) {
	e := environment(t)
	units, err := Units(e)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := Agent(e, "7")
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
	e, dir := environment(t), t.TempDir()
	units, err := Units(e)
	if err != nil {
		t.Fatal(err)
	}
	u := units[0]
	path := filepath.Join(dir, u.Name)
	other := strings.Replace(u.Text, mark+e.Dir, mark+"/elsewhere", 1)
	for _, step := range []struct {
		name    string
		before  string // in the file; "" leaves it
		force   bool
		changed bool
		err     error
	}{
		{"there is none", "", false, true, nil},
		{"once more", "", false, false, nil},
		{"an older one of ours", mark + e.Dir + "\nold\n", false, true, nil},
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

func TestServiceOf(t *testing.T) {
	if s := ServiceOf(os.Getpid()); s != "" {
		t.Errorf("this test is the service %q", s)
	}
}
