package worker

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/record"
)

// TestMemberWaits checks the reason that a worker reports for its wait at a rolling component.
func TestMemberWaits(t *testing.T) {
	ill := map[int]error{10: errors.New("it does not answer: connection refused")}
	for _, tt := range []struct {
		m    RollingSnapshot
		kind string
		who  []int
		why  string
	}{
		{RollingSnapshot{NeedsUpdate: true, Healthy: true, HealthyOthers: 1, Unhealthy: ill}, "quorum", []int{10}, "2 of 2 others needed, 1 healthy: server 10: it does not answer: connection refused"},
		{RollingSnapshot{NeedsUpdate: true, Healthy: true, HealthyOthers: 2, Turn: &record.Turn{Server: 10}}, "turn", []int{10}, "waits for its turn; it is the turn of server 10"},
		{RollingSnapshot{Healthy: true, OthersChecked: true, Unhealthy: map[int]error{1: ill[10], 10: ill[10]}}, "quorum", []int{1, 10}, "sees enough healthy members again: 1 of 2 others needed, 0 healthy"},
	} {
		t.Run(tt.why, func(t *testing.T) {
			tt.m.LRN, tt.m.Servers = 2, []int{1, 2, 10}
			if move := NextRolling(tt.m); move != MoveWait {
				t.Errorf("%+v: %s", tt.m, move)
			}
			if kind, who, why := tt.m.describeWait(); kind != tt.kind || !cmp.Equal(who, tt.who) || !strings.Contains(why, tt.why) {
				t.Errorf("%s %v %q, want %s %v %q", kind, who, why, tt.kind, tt.who, tt.why)
			}
		})
	}
}
