package updater

import (
	"testing"

	"bijou/updater/record"
)

// An updater goes over to another version once all workers have come up with it.
func TestShown(t *testing.T) {
	for _, tt := range []struct {
		what     string
		r        *record.Request
		g        record.Gate
		recovery *record.Recovery
		want     bool
	}{
		{"somebody has replaced it by hand", nil, record.Gate{}, nil, true},
		{"before the first gate", request(nil), record.Gate{}, nil, false},
		{"the gate of another request", request(nil), record.Gate{Request: 3, StartedAt: t0(), Step: 1}, nil, false},
		{"after it", request(nil), opened(1), nil, true},
		{"stopped before it", ended(true), record.Gate{}, nil, false},
		{"done", ended(false), record.Gate{}, nil, true},
		{"recovered", nil, record.Gate{}, &record.Recovery{}, false},
	} {
		if got := isProven(tt.r, tt.g, tt.recovery); got != tt.want {
			t.Errorf("%s: %t", tt.what, got)
		}
	}
}
