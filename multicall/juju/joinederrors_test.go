package juju

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"bijou/multicall/console"
	"bijou/state"
)

// TestJoinErrors checks that a combined error keeps the text, hint and kind of each error.
func TestJoinErrors(t *testing.T) {
	gone := fmt.Errorf("unit %q %w", "app/7", state.ErrNotFound)
	hinted := console.Hint(errors.New("cannot retry start of app/0"), "juju hook-history app/0")

	for _, tt := range []struct {
		name string
		errs []error
		text string
	}{
		{"none", nil, ""},
		{"one", []error{gone}, "error: " + gone.Error() + "\n"},
		{"several", []error{hinted, gone}, "error: cannot retry start of app/0\nerror: " + gone.Error() + "\nhint: juju hook-history app/0\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := joinErrors(tt.errs)
			var out bytes.Buffer
			console.Report(&out, err)
			if out.String() != tt.text {
				t.Errorf("%q, want %q", out.String(), tt.text)
			}
			if got := errors.Is(err, state.ErrNotFound); got != (len(tt.errs) > 0) {
				t.Errorf("not found: %v", got)
			}
		})
	}
}
