package agent

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/statetest"
)

// TestFloodOfOneUnit runs a hook that prints 15 MB. The unit's files must contain all of it, the store must
// contain a limited part, and the other units must not be delayed.
func TestFloodOfOneUnit(t *testing.T) {
	need.Whole(t)
	st, _ := statetest.SQLite(t)
	r := newRig(t, st)
	r.lonely(map[string]string{"install": "yes " + strings.Repeat("x", 99) + " | head -c 15000000; echo the end"})
	statetest.AddService(t, st, r.recorder(statetest.Meta("other", "provides: {}\n"), hooks(), nil), 1)
	r.start()
	r.awaitState("other/0", "started")
	r.awaitState("app/0", "started")
	var text []byte
	files, err := filepath.Glob(filepath.Join(r.folder("app/0"), "hooks.log*"))
	for _, file := range files {
		part, rerr := os.ReadFile(file)
		text, err = append(text, part...), errors.Join(err, rerr)
	}
	if n := bytes.Count(text, []byte(strings.Repeat("x", 99)+"\n")); n != 150000 || err != nil {
		t.Errorf("%d lines are in the unit's files %q, %v", n, files, err)
	}
	r.eventually("the end is logged, or told of as too much", func() bool {
		return strings.Contains(r.logs(), "the end\n") || strings.Contains(r.logs(), "lines are missing here")
	})
	if stored := len(r.logs()); stored > 8<<20 {
		t.Errorf("%d bytes in the store's log", stored)
	}
}
