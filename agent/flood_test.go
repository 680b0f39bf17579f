package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/state/statetest"
)

// TestFloodOfOneUnit has a hook say 15 MB: what is kept of it is bounded, and the
// other units go on.
func TestFloodOfOneUnit(t *testing.T) {
	st, _ := statetest.SQLite(t)
	r := newRig(t, st)
	r.lonely(map[string]string{"install": "yes " + strings.Repeat("x", 99) + " | head -c 15000000; echo the end"})
	statetest.AddService(t, st, r.recorder(statetest.Meta("other", "provides: {}\n"), hooks(), nil), 1)
	r.start()
	r.awaitState("other/0", "started")
	r.awaitState("app/0", "started")
	files, err := filepath.Glob(filepath.Join(r.folder("app/0"), "hooks.log*"))
	if err != nil || len(files) != 2 {
		t.Errorf("files of the log: %q, %v", files, err)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 11<<20 {
			t.Errorf("%s: %d bytes, %v", file, info.Size(), err)
		}
	}
	r.eventually("the end is logged, or told of as too much", func() bool {
		return strings.Contains(r.logs(), "the end\n") || strings.Contains(r.logs(), "were too many for this log")
	})
	if stored := len(r.logs()); stored > 8<<20 {
		t.Errorf("%d bytes in the store's log", stored)
	}
}
