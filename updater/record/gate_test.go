package record_test

import (
	"testing"

	"bijou/testscripts/kit/updatertest"
	"bijou/updater/record"
)

// TestShown checks that an updater switches to a new version only after all workers run this version.
func TestShown(t *testing.T) {
	for _, tt := range []struct {
		what     string
		r        *record.Request
		g        record.Gate
		recovery *record.Recovery
		want     bool
	}{
		{"somebody has replaced it by hand", nil, record.Gate{}, nil, true},
		{"before the first gate", updatertest.Request(nil), record.Gate{}, nil, false},
		{"the gate of another request", updatertest.Request(nil), record.Gate{Request: 3, StartedAt: updatertest.T0(), Step: 1}, nil, false},
		{"after it", updatertest.Request(nil), updatertest.Opened(1), nil, true},
		{"stopped before it", updatertest.Ended(true), record.Gate{}, nil, false},
		{"done", updatertest.Ended(false), record.Gate{}, nil, true},
		{"recovered", nil, record.Gate{}, &record.Recovery{}, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if got := record.IsProven(tt.r, tt.g, tt.recovery); got != tt.want {
				t.Errorf("%t", got)
			}
		})
	}
}
