package juju

import (
	"os"
	"path/filepath"
	"testing"
)

// TestBackupOfUnreadableUnit checks that a backup fails if it cannot read a unit's directory, instead of saying that the
// unit is not on this host.
func TestBackupOfUnreadableUnit(t *testing.T) {
	w := newTestEnv(t)
	w.mustRun("bootstrap")
	w.mustRun("deploy", w.writeCharm("trivial", ""))
	file := filepath.Join(t.TempDir(), "backup.zip")
	w.mustRun("backup", "--with-units", file)

	dir := filepath.Join(w.home.Dir, "default", "machines", "0", "units")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	loop := filepath.Join(dir, "trivial-0")
	if err := os.Symlink(loop, loop); err != nil {
		t.Fatal(err)
	}
	w.mustFail(1, `cannot back up the directory of unit "trivial/0"`, "backup", "--force", "--with-units", file)
}
