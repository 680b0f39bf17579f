package uniter

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"bijou/state"
)

// TestExplainRefusal: a hook whose writes are refused has failed, and is not committed again and again. While the store is
// away it is.
func TestExplainRefusal(t *testing.T) {
	for name, test := range map[string]struct {
		err  error
		want string
	}{
		"none":       {nil, ""},
		"away":       {state.ErrAway, ""},
		"another":    {errors.New("disk full"), ""},
		"not leader": {state.ErrNotLeader, "only the leader can change"},
		"refused":    {fmt.Errorf("%w: machine 1 cannot put %q", state.ErrDenied, "units/a/0/state"), `may not change, so its changes are dropped: permission denied: machine 1 cannot put "units/a/0/state"`},
	} {
		t.Run(name, func(t *testing.T) {
			got := explainRefusal(&runningHook{}, test.err)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
