package juju

import (
	"strings"
	"testing"
	"time"
)

// TestSinceText checks that only an age is followed by "ago", also for times of the day before.
func TestSinceText(t *testing.T) {
	for ago, want := range map[time.Duration]string{
		5 * time.Second: "s ago)", 5 * time.Minute: "5m ago)", 13 * time.Hour: "13h ago)", 23 * time.Hour: "23h ago)", 25 * time.Hour: "",
	} {
		got := sinceText(time.Now().Add(-ago))
		if strings.HasSuffix(got, "ago)") != (want != "") || !strings.HasSuffix(got, want) {
			t.Errorf("%s ago: %q", ago, got)
		}
	}
}
