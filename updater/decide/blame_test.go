package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/record"
)

// doing returns an activity of the worker at step 2.
func doing(kind, message string, servers ...int) record.Activity {
	return record.Activity{Request: 4, Attempt: 1, Step: 2, Kind: kind, Message: message, Servers: servers, Since: t0()}
}

// TestBlame checks that a timeout blames the servers that did not arrive and the servers for which others
// waited, but never a server that only waited.
func TestBlame(t *testing.T) {
	gaveUp := func(servers ...int) record.Status {
		w := at(2)
		w.Error, w.Message, w.WaitedFor = true, "waited", servers
		return w
	}
	stuck := func(activities map[int]record.Activity, workers ...record.Status) Snapshot {
		return with(running(workers...), func(s *Snapshot) { s.Gate, s.Activities = opened(2), activities })
	}
	tests := []struct {
		what  string
		s     Snapshot
		after time.Duration
		want  []int
		why   string
	}{
		{"one has not come to a barrier", stuck(nil, gaveUp(10), at(2), at(1)), 0, []int{10}, "server 10 is at step step; server 1, step step: waited"},
		{"all have given up waiting", stuck(nil, gaveUp(10), gaveUp(10), at(1)), 0, []int{10}, "server 10 is at step step; server 1"},
		{"it is gone", with(stuck(nil, gaveUp(10), at(2), at(1)), func(s *Snapshot) {
			s.Absent, s.Current.Missing = map[int]time.Time{10: t0()}, []int{10}
		}), 0, []int{10}, "server 10 is at step step (no worker is alive there); "},
		{"it has failed itself", stuck(nil, gaveUp(2), failed(1), at(2)), 0, []int{2}, "server 2, step step: broken; server 1, step step: waited"},
		{"contents: the others see that first", stuck(nil, at(2), gaveUp(1), gaveUp(1)), 0, []int{1}, "server 1 is at step step; server 2"},
		{"a hung command in its turn", stuck(map[int]record.Activity{
			1: doing("turn", "waits for its turn", 2), 2: doing("", `runs "podman pull x"`), 10: doing("turn", "waits for its turn", 2),
		}, at(2), at(2), at(2)), time.Hour + StallGrace, []int{2}, `server 2 is at step step: runs "podman pull x" since 2018-11-07T12:00:00Z; server 1 is at step step: waits for its turn`},
		{"a quorum that is missing, of one that is done", stuck(map[int]record.Activity{
			1: doing("turn", "waits for its turn", 2), 2: doing("quorum", "1 of 2", 10),
		}, at(2), at(2), at(3)), time.Hour + StallGrace, []int{10}, "server 10 is at step step: waits for server 1 and 2 to reach this step"},
		{"the turn of one that is dead", with(stuck(map[int]record.Activity{1: doing("turn", "", 10), 10: doing("quorum", "", 1)}, at(2), at(3), at(2)), func(s *Snapshot) {
			s.Absent, s.Current.Missing = map[int]time.Time{10: t0()}, []int{10}
		}), time.Hour + StallGrace, []int{10}, "no worker is alive there"},
		{"who brings contents", stuck(map[int]record.Activity{1: doing("contents", ""), 2: doing("", "brings"), 10: doing("contents", "")}, at(2), at(2), at(2)), time.Hour + StallGrace, []int{2}, "brings"},
		{"what it did at an earlier step does not count", stuck(map[int]record.Activity{2: doing("turn", "old", 1)}, at(3), at(3), at(2)), time.Hour + StallGrace, []int{10}, "server 10"},
		{"they wait for one another", stuck(map[int]record.Activity{1: doing("turn", "", 2), 2: doing("turn", "", 1), 10: doing("turn", "", 2)}, at(2), at(2), at(2)), time.Hour + StallGrace, []int{1, 2, 10}, ""},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			a := Next(tt.s, t0().Add(tt.after))
			if a.Verb != Stop || !strings.Contains(a.Why, tt.why) {
				t.Errorf("%s %q, want %q", a.Verb, a.Why, tt.why)
				return
			}
			alert, h := last(a.Changes).Value.(record.Alert), a.Changes[1].Value.(record.History)
			if diff := cmp.Diff(tt.want, alert.Servers); diff != "" || !cmp.Equal(tt.want, h.AtFault) || !strings.Contains(alert.Message, tt.why) {
				t.Errorf("%s the history blames %v", diff, h.AtFault)
			}
		})
	}
}

// TestSlow checks that one alert is sent for each step if there was no progress for five minutes, no matter
// which server leads.
func TestSlow(t *testing.T) {
	s := with(running(at(2), at(2), at(1)), func(s *Snapshot) {
		s.Gate, s.StageSince, s.Witnessed = opened(1), t0(), true
		s.Gate.Waited, s.Gate.Progress = 4*60, s.Current.Progress(s.Workers)
	})
	now := t0().Add(5 * time.Minute)
	if a := Next(s, now.Add(-time.Second)); a.Verb != Wait || !a.Until.Equal(now) {
		t.Errorf("before: %s until %s", a.Verb, a.Until)
	}
	s.Gate.Waited = 5 * 60
	a := Next(s, now)
	alert, _ := last(a.Changes).Value.(record.Alert)
	if a.Verb != Slow || alert.Kind != "slow" || alert.ID != "4-1-slow-1" || !cmp.Equal(alert.Servers, []int{10}) || !strings.Contains(alert.Message, "no progress for 5m0s; server 10 is at step") {
		t.Errorf("%s %+v", a.Verb, alert)
	}
	s.Gate, _ = a.Changes[0].Value.(record.Gate)
	if a = Next(s, now.Add(time.Second)); a.Verb != Wait {
		t.Errorf("once more: %s %s", a.Verb, a.Why)
	}
	if a = Next(s, now.Add(time.Minute)); a.Verb != Note || !a.Changes[0].Value.(record.Gate).Slow {
		t.Errorf("a minute later: %s %v", a.Verb, a.Changes)
	}
	s.StageSince, s.WaitedBefore, s.Witnessed = t0().Add(3*time.Hour), 5*time.Minute, false // a new leader with a different clock
	if a = Next(s, s.StageSince.Add(time.Second)); a.Verb != Wait {
		t.Errorf("another leader: %s %s", a.Verb, a.Why)
	}
	s.Workers[10] = at(2)
	if a = Next(s, s.StageSince); a.Verb != Open || a.Changes[0].Value.(record.Gate).Slow {
		t.Errorf("the next step: %s %v", a.Verb, a.Changes)
	}
}
