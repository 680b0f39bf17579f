package updater

import (
	"fmt"
	"testing"
	"time"

	"bijou/updater/record"
)

// A leader's time goes on evenly while an update runs, however its machine's clock is
// set meanwhile; when none runs, that clock is what counts.
func TestLeadersTime(t *testing.T) {
	hourAgo := clock{wallStart: time.Now().Add(-time.Hour).Round(0), monotonicStart: time.Now()}
	for _, tt := range []struct {
		what   string
		r      *record.Request
		steady bool
	}{
		{"an update runs", request(nil), true},
		{"it was stopped by hand, which is not reported yet", request(func(r *record.Request) { r.Stop = true }), true},
		{"none", nil, false},
		{"it has ended", ended(false), false},
		{"it was stopped", ended(true), false},
	} {
		m := &observations{clock: hourAgo}
		now := m.now(tt.r)
		if off := time.Since(now); (off > 30*time.Minute) != tt.steady {
			t.Errorf("%s: the leader's time is %s behind", tt.what, off)
		}
		if until := m.clock.toWallClock(now.Add(time.Minute)); time.Until(until) > time.Minute || time.Until(until) < 0 {
			t.Errorf("%s: a minute from now is %s from now outside", tt.what, time.Until(until))
		}
	}
	if at := hourAgo.toWallClock(time.Time{}); !at.IsZero() {
		t.Errorf("no time is %s outside", at)
	}
}

// A clock that was set leaves the worker's own alone.
func TestClock(t *testing.T) {
	c := newClock()
	hour := time.Hour
	for what, tt := range map[string]struct{ at, want time.Time }{
		"of before":     {c.wallStart.Add(-hour), c.wallStart},
		"of the future": {c.wallStart.Add(hour), time.Time{}},
	} {
		got := c.clamp(tt.at)
		if tt.want.IsZero() && got.After(time.Now()) || !tt.want.IsZero() && !got.Equal(tt.want) {
			t.Error(what, fmt.Sprint(got))
		}
	}
}
