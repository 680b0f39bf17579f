package hookexec

import (
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
		if err == nil || !strings.Contains(err.Error(), record) || !strings.Contains(err.Error(), "then remove that file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
