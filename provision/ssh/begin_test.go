package ssh

import (
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestBeginCut interrupts a start while it installs the unit. It checks that all files that Stop must remove
// were recorded before.
func TestBeginCut(t *testing.T) {
	dir := t.TempDir()
	check(t, os.MkdirAll(dir+"/tools/1-x", 0o755))
	check(t, os.WriteFile(dir+"/tools/1-x/bijou", []byte("#!/bin/sh\n[ \"$2\" = --dir ] || kill -9 $PPID\n"), 0o755))
	script, err := scripts.ReadFile("scripts/begin.sh")
	check(t, err)
	text := strings.NewReplacer("/var/lib/juju/", dir+"/juju/", "/usr/bin/juju-", dir+"/juju-bin/juju-").Replace(string(script))
	if err := exec.Command("sh", "-c", text, "bijou", dir, "1-x", "1", "a.service", dir).Run(); err == nil {
		t.Fatal("it was not cut off")
	}
	if unit, err := os.ReadFile(dir + "/service"); err != nil || string(unit) != "a.service\n" {
		t.Errorf("the unit is %q, error %v", unit, err)
	}
}

// TestBeginWithNothingToDo starts an agent that exits immediately because its machine is gone. The keeper
// also exits, which must not count as a failed start.
func TestBeginWithNothingToDo(t *testing.T) {
	const agent = "#!/bin/sh\n[ \"$2\" != --dir ] || ln -s bijou \"$3/machine-agent\"\n"

	dir := t.TempDir()
	check(t, os.MkdirAll(dir+"/tools/1-x", 0o755))
	check(t, os.MkdirAll(dir+"/machines/1", 0o755))
	check(t, os.WriteFile(dir+"/tools/1-x/bijou", []byte(agent), 0o755))
	keeper, err := scripts.ReadFile("scripts/keep.sh")
	check(t, err)
	check(t, os.WriteFile(dir+"/keep.sh", keeper, 0o700))
	begin, err := scripts.ReadFile("scripts/begin.sh")
	check(t, err)
	text := strings.NewReplacer("/var/lib/juju/", dir+"/juju/", "/usr/bin/juju-", dir+"/juju-bin/juju-").Replace(string(begin))

	began := time.Now()
	said, err := exec.Command("sh", "-c", text, "bijou", dir, "1-x", "1", "a.service", dir+"/no-systemd").CombinedOutput()

	if err != nil {
		t.Errorf("after %s: %v: %s", time.Since(began), err, said)
	}
}
