package clock

import (
	"fmt"
	"testing"
	"time"
)

// TestClock checks that a change of the host's clock does not change a worker's own clock.
func TestClock(t *testing.T) {
	c := New()
	hour := time.Hour
	for what, tt := range map[string]struct{ at, want time.Time }{
		"of before":     {c.wallStart.Add(-hour), c.wallStart},
		"of the future": {c.wallStart.Add(hour), time.Time{}},
	} {
		t.Run(what, func(t *testing.T) {
			got := c.Clamp(tt.at)
			if tt.want.IsZero() && got.After(time.Now()) || !tt.want.IsZero() && !got.Equal(tt.want) {
				t.Error(what, fmt.Sprint(got))
			}
		})
	}
}
