package hookexec

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestReap(t *testing.T) {
	record := filepath.Join(t.TempDir(), "hook.json")
	if killed, err := Reap(record, "a"); killed || err != nil {
		t.Fatalf("without a record: %v, %v", killed, err)
	}
	cmd := exec.Command("sleep", "1000")
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	if err := writeRecord(record, "a", cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if killed, err := Reap(record, "b"); killed || err != nil {
		t.Fatalf("record of another run: %v, %v", killed, err)
	}
	if killed, err := Reap(record, "a"); !killed || err != nil {
		t.Fatalf("living process: %v, %v", killed, err)
	}
	<-ended
	if killed, err := Reap(record, "a"); killed || err != nil {
		t.Fatalf("process that is gone: %v, %v", killed, err)
	}
}

func TestReapWaitsForTheWholeGroup(t *testing.T) {
	dir := t.TempDir()
	record, children := filepath.Join(dir, "hook.json"), filepath.Join(dir, "children")
	cmd := exec.Command("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8; do sleep 1000 & done; echo > "+children+"; sleep 1000")
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	eventually(t, "the hook has children", func() bool { _, err := os.Stat(children); return err == nil })
	if err := writeRecord(record, "a", cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if killed, err := Reap(record, "a"); !killed || err != nil {
		t.Fatalf("%v, %v", killed, err)
	}
	if isGroupRunning(cmd.Process.Pid) {
		t.Error("a child still runs")
	}
	<-ended
}

func TestDamagedRecordSaysWhatToDo(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "torn": `{"id":"a","pi`} {
		record := filepath.Join(t.TempDir(), "hook.json")
		if err := os.WriteFile(record, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Reap(record, "a")
		if err == nil || !strings.Contains(err.Error(), record) || !strings.Contains(err.Error(), "then remove the record") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestRecordIsOverwritten checks that a record replaces the previous file, whatever its type. A symlink is
// replaced too, and its target does not change.
func TestRecordIsOverwritten(t *testing.T) {
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "elsewhere")
	for name, prepare := range map[string]func(record string) error{
		"none":      func(string) error { return nil },
		"a record":  func(record string) error { return writeRecord(record, strings.Repeat("x", 26), os.Getpid()) },
		"an older":  func(record string) error { return os.WriteFile(record, []byte(`{"id":"b","pid":1}`), 0o600) },
		"something": func(record string) error { return os.WriteFile(record, bytes.Repeat([]byte("x"), 1000), 0o600) },
		"a link": func(record string) error {
			return errors.Join(os.WriteFile(elsewhere, bytes.Repeat([]byte("x"), recordSize), 0o600), os.Symlink(elsewhere, record))
		},
	} {
		record := filepath.Join(dir, name+".json")
		if err := errors.Join(prepare(record), writeRecord(record, "a", os.Getpid())); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if id, err := LastRun(record); id != "a" || err != nil {
			t.Errorf("%s: the last run is %q, %v", name, id, err)
		}
	}
	if left, err := os.ReadFile(elsewhere); err != nil || string(left) != strings.Repeat("x", recordSize) {
		t.Errorf("what the link leads to: %q, %v", left, err)
	}
}
