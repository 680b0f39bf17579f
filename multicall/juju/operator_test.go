package juju

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"bijou/multicall/console"
	"bijou/state"
)

// TestAdvise: what is wrong with a store is one line, and what to do another.
func TestAdvise(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{state.ErrAway, "hint: see that the environment's store can be reached"},
		{state.ErrStoreGone, "hint: the environment's store is gone"},
		{state.ErrNoStore, "hint: the environment's store is gone"},
	} {
		var out bytes.Buffer
		code := console.Report(&out, withHint(fmt.Errorf("cannot deploy: %w", c.err)))
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if code != 1 || len(lines) != 2 || !strings.HasPrefix(lines[0], "error: cannot deploy: ") || !strings.HasPrefix(lines[1], c.want) {
			t.Errorf("%v: exit %d, %q", c.err, code, lines)
		}
	}
}
