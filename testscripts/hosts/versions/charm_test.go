package versions

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

// TestCharm switches a unit from the previous binary to this one. Its charm runs from venv and has a revision
// and a version, and .jujuignore says that half of its directory is not packed. The directory must still
// count as the charm that the unit runs. Later changes must be packed in full, and the next revision must
// have the next number.
func TestCharm(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	former, current := Former(t), Current(t)
	w := newWorld(t, former, "")
	w.charm = filepath.Join(w.dir, "today")
	w.writeCharm(map[string]string{
		"metadata.yaml":        "name: today\nsummary: s\n",
		".jujuignore":          "/venv\nversion\nrevision\n*.log\n",
		"revision":             "4\n",
		"version":              "v4\n",
		"venv/run":             "#!/bin/sh -e\necho \"$1 $(cat version) $(cat revision)\" >>../ran\n",
		"build/notes":          "",
		"notes.log":            "",
		"hooks/start":          "#!/bin/sh -e\nexec venv/run start\n",
		"hooks/upgrade-charm":  "#!/bin/sh -e\nexec venv/run upgrade-charm\n",
		"hooks/config-changed": "#!/bin/sh -e\nexec venv/run config-changed\n",
	})
	check(t, os.Chmod(filepath.Join(w.charm, "metadata.yaml"), 0o664))
	w.juju(former, "deploy", w.charm)
	folder := w.machine(0, "agents", "unit-today-0")
	ends := func(want string) {
		t.Helper()
		w.eventually("the last hook is "+want, func() string {
			ran, _ := os.ReadFile(filepath.Join(folder, "ran"))
			if !strings.HasSuffix(string(ran), want+"\n") {
				return "they were: " + string(ran)
			}
			return ""
		})
	}
	ends("start v4 4")

	w.juju(current, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
	w.current = current
	out, err := w.command(current, "refresh", "today").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "already running the latest charm") {
		t.Errorf("nothing has changed, and it is said: %s, %v", out, err)
	}

	w.writeCharm(map[string]string{"version": "v5\n"})
	w.juju(current, "refresh", "today")
	ends("config-changed v5 5")
	for name, there := range map[string]bool{"venv/run": true, "build/notes": false, "notes.log": false, ".jujuignore": false} {
		if _, err := os.Stat(filepath.Join(folder, "charm", name)); (err == nil) != there {
			t.Errorf("%s: %v", name, err)
		}
	}

	// The previous binary must be able to read what this one has packed.
	w.juju(former, "upgrade-juju", "--allow-downgrade", "--wait", "3m")
	w.current = former
	w.juju(former, "add-unit", "today")
	folder = w.machine(0, "agents", "unit-today-1")
	ends("start v5 5")
}

// writeCharm writes files of the world's charm, all of them executable.
func (w *world) writeCharm(files map[string]string) {
	w.t.Helper()
	for name, text := range files {
		path := filepath.Join(w.charm, name)
		check(w.t, os.MkdirAll(filepath.Dir(path), 0o755))
		check(w.t, os.WriteFile(path, []byte(text), 0o755))
	}
}
