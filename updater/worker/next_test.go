package worker

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater/record"
	"bijou/updater/release"
)

// seated returns the snapshot of worker 2, which runs version 1.1 and has reached that step of the request.
func seated(step int, change func(*Snapshot)) Snapshot {
	w := came(step)
	w.At = t0()
	if step > 0 {
		w.Steps = 3
	}
	s := Snapshot{
		LRN: 2, Own: "1.1", Timeout: time.Hour, Current: request(nil), Status: &w,
		Steps: release.Manifest{Components: []release.Component{{Name: "a", Strategy: release.StopAll}, {Name: "b", Strategy: release.Any}}}.Steps(),
	}
	if change != nil {
		change(&s)
	}
	return s
}

// did returns a journal about the request.
func did(step int, phase string) Journal {
	return Journal{Request: 4, Started: t0(), Attempt: 1, Step: step, Phase: phase, Message: "broken", At: t0()}
}

func TestNextTask(t *testing.T) {
	three := map[int]record.Status{1: came(2), 2: came(2), 10: came(2)}
	two := map[int]record.Status{1: came(2), 2: came(2), 10: came(1)}
	tests := []struct {
		what  string
		s     Snapshot
		after time.Duration
		job   Job
		until time.Duration // the time after t0, or 0 for none
		why   string
	}{
		{"no request", seated(2, func(s *Snapshot) { s.Current = nil }), 0, Idle, 0, "nothing to do"},
		{"not in the list", seated(2, func(s *Snapshot) { s.LRN = 3 }), 0, Idle, 0, "nothing to do"},
		{"1 is not 10 (fault 13)", seated(2, func(s *Snapshot) { s.Current.Servers = []int{10, 12} }), 0, Idle, 0, "nothing to do"},
		{"stopped", seated(2, func(s *Snapshot) { s.Current.Stop = true }), 0, Idle, 0, "nothing to do"},
		{"ended", seated(2, func(s *Snapshot) { s.Current = ended(false) }), 0, Idle, 0, "nothing to do"},

		{"another version", seated(0, func(s *Snapshot) { s.Own = "1.0" }), 0, Install, 0, "install 1.1"},
		{"killed while it installed", seated(0, func(s *Snapshot) { s.Own, s.Journal = "1.0", did(0, Running) }), 0, Install, 0, "install 1.1"},
		{"installed", seated(0, func(s *Snapshot) { s.Own, s.Journal = "1.0", did(0, Done) }), 0, Idle, record.HandOverTimeout, "waiting for 1.1"},
		{"no hand-over (fault 7)", seated(0, func(s *Snapshot) { s.Own, s.Journal = "1.0", did(0, Done) }), record.HandOverTimeout, Write, 0, "install"},
		{"install failed", seated(0, func(s *Snapshot) { s.Own, s.Journal = "1.0", did(0, Failed) }), 0, Write, 0, "install"},
		{"no hand-over, and a retry", seated(0, func(s *Snapshot) {
			s.Own, s.Journal, s.Current.Attempt, s.Status.Attempt = "1.0", did(0, Done), 2, 2
		}), record.HandOverTimeout, Install, 0, "install 1.1"},
		{"the successor comes", seated(0, nil), 0, Write, 0, "a/stop"},

		{"no gate yet", seated(2, nil), 0, Idle, firstLookDelay, "waiting"},
		{"the gate", seated(2, func(s *Snapshot) { s.Gate = opened(2) }), 0, RunStep, 0, "a/update"},
		{"the gate of the step before", seated(2, func(s *Snapshot) { s.Gate = opened(1) }), 0, Idle, firstLookDelay, "waiting"},
		{"no gate for long", seated(2, nil), firstLookDelay, Look, 0, "has not opened the gate"},
		{"it looks, and all are there", seated(2, func(s *Snapshot) { s.Workers = three }), firstLookDelay, RunStep, 0, "a/update"},
		{"it looks, and one is not", seated(2, func(s *Snapshot) { s.Workers, s.LookedAt = two, t0().Add(firstLookDelay) }), firstLookDelay, Idle, 2 * firstLookDelay, "waiting"},
		{"it looks ever more seldom", seated(2, func(s *Snapshot) { s.LookedAt = t0().Add(10 * time.Minute) }), 10 * time.Minute, Idle, 10*time.Minute + maxLookInterval, "waiting"},
		{"its commit took long, so that the gate will", seated(2, func(s *Snapshot) { s.CommitTook = time.Second }), firstLookDelay, Idle, lookDelayPerCommit * time.Second, "waiting"},
		{"they do not all look at once", seated(2, func(s *Snapshot) { s.Jitter = 0.5 }), firstLookDelay, Idle, firstLookDelay * 3 / 2, "waiting"},
		{"it looked at the step before", seated(2, func(s *Snapshot) { s.LookedAt = t0().Add(-time.Second) }), 0, Idle, firstLookDelay, "waiting"},
		{"the time is over", seated(2, func(s *Snapshot) { s.LookedAt = t0().Add(time.Hour - time.Second) }), time.Hour, Look, 0, "has not opened the gate"},
		{"the time is over, one is not there", seated(2, func(s *Snapshot) { s.Workers = two }), time.Hour, Write, 0, "a/update"},
		{"the time is over, all are there", seated(2, func(s *Snapshot) { s.Workers = three }), time.Hour, RunStep, 0, "a/update"},

		{"the store was away", seated(2, func(s *Snapshot) { s.Workers, s.StoreBackAt = two, t0().Add(30*time.Minute) }), time.Hour, Idle, 30*time.Minute + firstLookDelay, "waiting"},
		{"the store was away, and it waits since", seated(2, func(s *Snapshot) { s.Workers, s.StoreBackAt = two, t0().Add(30*time.Minute) }), 90 * time.Minute, Write, 0, "a/update"},
		{"it has not looked since the store came back", seated(2, func(s *Snapshot) {
			s.LookedAt, s.StoreBackAt = t0().Add(29*time.Minute), t0().Add(30*time.Minute)
		}), 30 * time.Minute, Idle, 30*time.Minute + firstLookDelay, "waiting"},
		{"others move", seated(2, func(s *Snapshot) {
			s.Workers, s.LookedAt, s.MovedAt = two, t0().Add(time.Hour), t0().Add(time.Hour)
		}), time.Hour, Idle, time.Hour + maxLookInterval, "waiting"},
		{"others have moved", seated(2, func(s *Snapshot) { s.Workers, s.MovedAt = two, t0().Add(time.Hour) }), 2 * time.Hour, Write, 0, "a/update"},

		{"killed in the step (fault 1)", seated(2, func(s *Snapshot) { s.Gate, s.Journal = opened(2), did(2, Running) }), 0, RunStep, 0, "a/update"},
		{"done", seated(2, func(s *Snapshot) { s.Gate, s.Journal = opened(2), did(2, Done) }), 0, Write, 0, "b/update"},
		{"the last one is done (fault 10)", seated(3, func(s *Snapshot) { s.Gate, s.Journal = opened(3), did(3, Done) }), 0, Write, 0, "b/update"},
		{"the step before is done", seated(2, func(s *Snapshot) { s.Gate, s.Journal = opened(2), did(1, Done) }), 0, RunStep, 0, "a/update"},
		{"done in another store", seated(2, func(s *Snapshot) {
			s.Gate, s.Journal = opened(2), did(2, Done)
			s.Journal.Started = t0().Add(-time.Hour)
		}), 0, RunStep, 0, "a/update"},
		{"failed", seated(2, func(s *Snapshot) { s.Gate, s.Journal = opened(2), did(2, Failed) }), 0, Write, 0, "a/update"},
		{"has said so", seated(2, func(s *Snapshot) { w := failed(1); s.Status = &w }), 0, Idle, 0, "failed: broken"},
		{"a retry", seated(2, func(s *Snapshot) { w := failed(1); s.Status, s.Current.Attempt = &w, 2 }), 0, Write, 0, "a/update"},
		{"a retry, and its own turn to run", seated(2, func(s *Snapshot) {
			s.Status.Attempt, s.Current.Attempt, s.Gate, s.Journal = 2, 2, opened(2), did(2, Failed)
		}), 0, RunStep, 0, "a/update"},
		{"no such step", seated(4, nil), 0, Write, 0, ""},
		{"finished", seated(3, func(s *Snapshot) { s.Status.Finished = true }), 0, Idle, 0, "all steps are done"},

		{"busy", seated(2, func(s *Snapshot) { s.Busy, s.Journal = true, did(2, Running) }), time.Hour, Idle, 0, "runs"},
		{"busy, and stopped (fault 18)", seated(2, func(s *Snapshot) { s.Busy, s.Journal, s.Current.Stop = true, did(2, Running), true }), 0, Cancel, 0, "stopped"},
		{"busy, and recovered", seated(2, func(s *Snapshot) { s.Busy, s.Journal, s.Current = true, did(2, Running), nil }), 0, Cancel, 0, "stopped"},
		{"busy, and another request", seated(2, func(s *Snapshot) { s.Busy, s.Journal, s.Current.ID = true, did(2, Running), 5 }), 0, Cancel, 0, "stopped"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := NextTask(tt.s, t0().Add(tt.after))
			var until time.Time
			if tt.until > 0 {
				until = t0().Add(tt.until)
			}
			if got.Job != tt.job || !got.Until.Equal(until) || !strings.Contains(got.Why, tt.why) {
				t.Errorf("%s until %s: %q; want %s until %s: %q", got.Job, got.Until, got.Why, tt.job, until, tt.why)
			}
		})
	}
}

// TestRecords checks the records that a worker writes.
func TestRecords(t *testing.T) {
	now := t0().Add(time.Hour)
	status := func(step int, name string, change func(*record.Status)) record.Status {
		s := record.Status{Version: "1.1", Request: 4, Attempt: 1, Step: step, StepName: name, At: now}
		if step > 0 {
			s.Steps = 3
		}
		if change != nil {
			change(&s)
		}
		return s
	}
	tests := []struct {
		what string
		s    Snapshot
		want record.Status
	}{
		{"old worker joins", seated(0, func(s *Snapshot) { s.Own, s.Status = "1.0", nil }), status(0, "install", nil)},
		{"new worker joins", seated(0, func(s *Snapshot) { s.Status = nil }), status(1, "a/stop", nil)},
		{"from another request", seated(3, func(s *Snapshot) { s.Status.Request = 3; s.Status.Finished = true }), status(1, "a/stop", nil)},
		{"its record is lost", seated(0, func(s *Snapshot) { s.Status, s.Journal = nil, did(2, Running) }), status(2, "a/update", nil)},
		{"next step", seated(1, func(s *Snapshot) { s.Journal = did(1, Done) }), status(2, "a/update", nil)},
		{"end", seated(3, func(s *Snapshot) { s.Journal = did(3, Done) }), status(3, "b/update", func(s *record.Status) { s.Finished = true })},
		{"retry after the end of its part", seated(3, func(s *Snapshot) { s.Status.Finished, s.Current.Attempt = true, 2 }), status(3, "b/update", func(s *record.Status) { s.Finished, s.Attempt = true, 2 })},
		{"waited too long", seated(2, func(s *Snapshot) {
			s.Workers = map[int]record.Status{1: came(1), 2: came(2)}
		}), status(2, "a/update", func(s *record.Status) {
			s.Error, s.Message, s.WaitedFor = true, "waited 1h0m0s for server 1 and 10 to reach step a/update", []int{1, 10}
		})},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got := NextTask(tt.s, now)
			if diff := cmp.Diff(tt.want, got.Status); diff != "" || got.Job != Write {
				t.Errorf("%s %s", got.Job, diff)
			}
		})
	}
}

func TestNextRolling(t *testing.T) {
	three, five := []int{1, 2, 10}, []int{1, 2, 3, 4, 5}
	mine, others, gone := &record.Turn{Server: 2}, &record.Turn{Server: 10}, &record.Turn{Server: 7}
	tests := []struct {
		what string
		m    RollingSnapshot
		want Move
	}{
		{"nothing to do (fault 22)", RollingSnapshot{Servers: three, Healthy: true, HealthyOthers: 2}, MoveDone},
		{"nothing to do, others are down", RollingSnapshot{Servers: three, Healthy: true}, MoveDone},
		{"nothing to do, one sees another", RollingSnapshot{Servers: three, Healthy: true, HealthyOthers: 1, OthersChecked: true}, MoveDone},
		{"updated, but not back in the cluster", RollingSnapshot{Servers: three, Turn: mine, Healthy: true, OthersChecked: true}, MoveGive},
		{"it still sees nobody", RollingSnapshot{Servers: three, Healthy: true, OthersChecked: true}, MoveWait},
		{"nor does one of five see enough", RollingSnapshot{Servers: five, Healthy: true, HealthyOthers: 1, OthersChecked: true}, MoveWait},
		{"half of five", RollingSnapshot{Servers: five, Healthy: true, HealthyOthers: 2, OthersChecked: true}, MoveDone},
		{"of two, the other is down, which may need this one", RollingSnapshot{Servers: []int{1, 2}, Healthy: true, OthersChecked: true}, MoveDone},
		{"the turn is free", RollingSnapshot{Servers: three, NeedsUpdate: true, Healthy: true, HealthyOthers: 2}, MoveTake},
		{"another's turn", RollingSnapshot{Servers: three, Turn: others, NeedsUpdate: true, Healthy: true, HealthyOthers: 2}, MoveWait},
		{"another's turn, and down", RollingSnapshot{Servers: three, Turn: others, NeedsUpdate: true, HealthyOthers: 2}, MoveWait},
		{"the turn of a server that is gone", RollingSnapshot{Servers: three, Turn: gone, NeedsUpdate: true, Healthy: true, HealthyOthers: 2}, MoveTake},
		{"its turn", RollingSnapshot{Servers: three, Turn: mine, NeedsUpdate: true, Healthy: true, HealthyOthers: 2}, MoveGo},
		{"updated", RollingSnapshot{Servers: three, Turn: mine, Healthy: true, HealthyOthers: 2}, MoveGive},
		{"one of three is not well", RollingSnapshot{Servers: three, NeedsUpdate: true, Healthy: true, HealthyOthers: 1}, MoveWait},
		{"its turn, but one is not well", RollingSnapshot{Servers: three, Turn: mine, NeedsUpdate: true, Healthy: true, HealthyOthers: 1}, MoveGive},
		{"down: it takes nobody anything", RollingSnapshot{Servers: three, Turn: mine, NeedsUpdate: true, HealthyOthers: 0}, MoveGo},
		{"ill for a moment, two of three are there", RollingSnapshot{Servers: three, Running: true, HealthyOthers: 2}, MoveTake},
		{"ill for a moment, one is down", RollingSnapshot{Servers: three, Running: true, HealthyOthers: 1}, MoveWait},
		{"ill for a moment in its turn, one is down", RollingSnapshot{Servers: three, Turn: mine, NeedsUpdate: true, Running: true, HealthyOthers: 1}, MoveGive},
		{"down, the turn is free", RollingSnapshot{Servers: three, NeedsUpdate: true}, MoveTake},
		{"not well, though new", RollingSnapshot{Servers: three, HealthyOthers: 2}, MoveTake},
		{"one of five is not well", RollingSnapshot{Servers: five, Turn: mine, NeedsUpdate: true, Healthy: true, HealthyOthers: 3}, MoveGo},
		{"two of five are not well", RollingSnapshot{Servers: five, NeedsUpdate: true, Healthy: true, HealthyOthers: 2}, MoveWait},
		{"alone", RollingSnapshot{Servers: []int{2}, Turn: mine, NeedsUpdate: true, Healthy: true}, MoveGo},
		{"of two", RollingSnapshot{Servers: []int{1, 2}, Turn: mine, NeedsUpdate: true, Healthy: true, HealthyOthers: 1}, MoveGo},
		{"of two, the other is down", RollingSnapshot{Servers: []int{1, 2}, NeedsUpdate: true, Healthy: true}, MoveWait},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			tt.m.LRN = 2
			if got := NextRolling(tt.m); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestNextOnce checks the three cases of contents.
func TestNextOnce(t *testing.T) {
	tests := []struct {
		what string
		d    OnceSnapshot
		want Move
	}{
		{"same version, success", OnceSnapshot{Contents: &record.Contents{Version: "1.1", Success: true}, Leads: true}, MoveDone},
		{"same version, failure", OnceSnapshot{Contents: &record.Contents{Version: "1.1"}, Leads: true}, MoveAbort},
		{"another version", OnceSnapshot{Contents: &record.Contents{Version: "1.0", Success: true}, Leads: true}, MoveGo},
		{"nothing", OnceSnapshot{Leads: true}, MoveGo},
		{"nothing, and not elected", OnceSnapshot{}, MoveTake},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			tt.d.Version = "1.1"
			if got := NextOnce(tt.d); got != tt.want {
				t.Errorf("%s, want %s", got, tt.want)
			}
		})
	}
}

// TestLooked checks the time at which a waiting worker has last observed progress of other workers.
func TestLooked(t *testing.T) {
	s := seated(2, nil)
	look := func(after time.Duration, steps ...int) time.Time {
		all := map[int]record.Status{}
		for i, step := range steps {
			all[s.Current.Servers[i]] = at(step)
		}
		s.ObserveWorkers(all, t0().Add(after))
		return s.MovedAt
	}
	if got := look(time.Minute, 1, 2, 1); !got.IsZero() {
		t.Errorf("at its first look it says %s", got)
	}
	if got := look(2*time.Minute, 1, 2, 1); !got.IsZero() {
		t.Errorf("when nothing has moved it says %s", got)
	}
	if got := look(3*time.Minute, 2, 2, 1); !got.Equal(t0().Add(3 * time.Minute)) {
		t.Errorf("when one has moved it says %s", got)
	}
}
