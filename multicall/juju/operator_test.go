package juju

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/state"
)

// TestAdviseReplaced checks that the error about a replaced store names both commands that can
// continue.
func TestAdviseReplaced(t *testing.T) {
	replaced := &state.Replaced{What: "the log was removed", Remove: []string{"/s/state.db-replaced", "/s/state.db-wal"}}
	var out bytes.Buffer
	code := console.Report(&out, hintByKind(fmt.Errorf("cannot deploy: %w", replaced)))
	for _, want := range []string{
		"error: cannot deploy: the log was removed: store is gone\n",
		"juju restore --replace FILE\n", "rm -f /s/state.db-replaced /s/state.db-wal; juju start\n",
	} {
		if code != 1 || !strings.Contains(out.String(), want) {
			t.Errorf("exit %d, want %q in:\n%s", code, want, &out)
		}
	}
}

// TestAdvise checks that an error about a store has one line, and its hint a second line.
func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{state.ErrAway, "hint: check that the model's store is reachable"},
		{state.ErrStoreGone, "hint: the model's store is gone"},
		{state.ErrNoStore, "hint: the model's store is gone"},
	} {
		var out bytes.Buffer
		code := console.Report(&out, hintByKind(fmt.Errorf("cannot deploy: %w", c.err)))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if code != 1 || len(lines) != 2 || !strings.HasPrefix(lines[0], "error: cannot deploy: ") || !strings.HasPrefix(lines[1], c.want) {
			t.Errorf("%v: exit %d, %q", c.err, code, lines)
		}
	}
}
