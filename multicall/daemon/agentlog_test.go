package daemon

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func openLog(t *testing.T, name string) *os.File {
	f, err := os.OpenFile(filepath.Join(t.TempDir(), name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// TestAgentLogIsBegunAgain checks that text that is written to the descriptor itself, for example by a
// panic, is in the log.
func TestAgentLogIsBegunAgain(t *testing.T) {
	stderr := openLog(t, "agent.log")
	log := rotateAgentLog(stderr, 1000)
	line := strings.Repeat("x", 99) + "\n"
	for range 25 {
		if _, err := log.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	fmt.Fprint(stderr, "panic\n")
	fmt.Fprint(log, "after\n")
	for path, want := range map[string]string{stderr.Name(): strings.Repeat(line, 3) + "panic\nafter\n", stderr.Name() + ".1": strings.Repeat(line, 11)} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s has %d bytes, want %d: %v", path, len(got), len(want), err)
		}
	}
}

func TestOtherFilesAreLeftAlone(t *testing.T) {
	if f := openLog(t, "mine.log"); rotateAgentLog(f, 1) != f {
		t.Error("another's file is rotated")
	}
	var b bytes.Buffer
	if rotateAgentLog(&b, 1) != &b {
		t.Error("what is no file is rotated")
	}
}
