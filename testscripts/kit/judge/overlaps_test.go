package judge

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestOverlaps checks runs of one unit on two hosts, whose processes may have the same number.
func TestOverlaps(t *testing.T) {
	line := func(event, host string, pid int, seconds int64) Event {
		return Event{Event: event, Hook: "config-changed", Host: host, PID: pid, At: seconds * 1e6}
	}
	first := []Event{line(Begin, "a", 1, 0), line(Ended, "a", 1, 5), line(Begin, "a", 2, 9), line(Wrote, "a", 2, 10)}
	for _, c := range []struct {
		other []Event
		want  []time.Duration
	}{
		{[]Event{line(Begin, "b", 1, 5), line(Ended, "b", 1, 9)}, nil},
		{[]Event{line(Begin, "b", 1, 3), line(Ended, "b", 1, 4)}, []time.Duration{time.Second}},
		{[]Event{line(Begin, "b", 1, 4), line(Ended, "b", 1, 12)}, []time.Duration{time.Second, time.Second}},
		{[]Event{line(Begin, "b", 1, 11), line(Ended, "b", 1, 12)}, nil}, // after a killed run
	} {
		var got []time.Duration
		for _, o := range Overlaps(append(c.other, first...)) {
			got = append(got, o.Lasts)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", c.other, diff)
		}
	}
	spans := Spans(first)
	if len(spans) != 2 || !spans[0].Over || spans[1].Over {
		t.Errorf("one has ended, and one has not: %v", spans)
	}
}
