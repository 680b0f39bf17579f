package decide

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/updater"
	"bijou/updater/record"
)

// base returns a fleet that is up to date.
func base(change func(*Snapshot)) Snapshot {
	s := Snapshot{
		Config: record.Config{Env: record.EnvProduction, WorkerTimeout: time.Hour}, OwnVersion: "1.1",
		Servers: []int{1, 2, 10}, Release: "1.1", Current: ended(false), LastID: 4,
		Entry: record.History{ID: 4, To: "1.1", Result: record.Running}, Workers: map[int]record.Status{},
	}
	if change != nil {
		change(&s)
	}
	return s
}

// running returns a fleet in the middle of an update.
func running(workers ...record.Status) Snapshot {
	return base(func(s *Snapshot) {
		s.Current = request(nil)
		for i, w := range workers {
			s.Workers[s.Servers[i]] = w
		}
	})
}

// handing returns a fleet whose server 1 has installed the version and waits for it to start. The leader
// first saw that at the given time.
func handing(seen time.Time) Snapshot {
	w := at(0)
	w.StepName = record.HandOverStep
	return with(running(w, at(0), at(1)), func(s *Snapshot) { s.HandingOver = map[int]time.Time{1: seen} })
}

func with(s Snapshot, change func(*Snapshot)) Snapshot {
	change(&s)
	return s
}

// since returns a fleet in the middle of an update that the leader first saw at t0 plus first. The record of
// the gate says that the fleet had waited without progress for the time waited.
func since(first, waited time.Duration) Snapshot {
	return with(running(at(1), at(1)), func(s *Snapshot) {
		s.StageSince, s.WaitedBefore, s.Gate = t0().Add(first), waited, opened(0)
		s.Gate.Waited, s.Gate.Progress = int(waited/time.Second), s.Current.Progress(s.Workers)
	})
}

// handingOver returns a fleet in the middle of an update whose server 10 is at the given step, and absent.
func handingOver(step int) Snapshot {
	return with(running(at(1), at(1), at(step)), func(s *Snapshot) {
		s.Absent, s.Current.Missing, s.Gate = map[int]time.Time{10: t0()}, []int{10}, opened(step)
	})
}

// retried returns handingOver after a retry one minute later.
func retried() Snapshot {
	return with(handingOver(0), func(s *Snapshot) { s.Current.Attempt, s.StageSince = 2, t0().Add(record.HandOverTimeout) })
}

func TestNext(t *testing.T) {
	window, err := record.ParseWindow("0 22 * * *; 6h; UTC")
	if err != nil {
		t.Fatal(err)
	}
	hour, past := t0().Add(time.Hour), t0().Add(-time.Hour)
	tests := []struct {
		what  string
		s     Snapshot
		after time.Duration // the time after t0
		verb  Verb
		until time.Time
		why   string
	}{
		{"up to date", base(nil), 0, Wait, time.Time{}, "up to date: 1.1"},
		{"a release", base(func(s *Snapshot) { s.Release = "1.2" }), 0, Start, time.Time{}, "update of 1, 2 and 10 to 1.2 (release)"},
		{"an older release (fault 9)", base(func(s *Snapshot) { s.Release = "1.0.9" }), 0, Wait, time.Time{}, "up to date"},
		{"an equal release", base(func(s *Snapshot) { s.Release = "1.01" }), 0, Wait, time.Time{}, "up to date"},
		{"a release, but env is none", base(func(s *Snapshot) { s.Release, s.Config.Env = "1.2", "none" }), 0, Wait, time.Time{}, "no updates"},
		{"no servers", base(func(s *Snapshot) { s.Servers = nil }), 0, Wait, time.Time{}, "no worker of a registered boot server"},
		{"a server was added", base(func(s *Snapshot) { s.Servers = []int{1, 2, 3, 10} }), 0, Start, time.Time{}, "update of 1, 2, 3 and 10 to 1.1 (servers)"},
		{"a server was removed", base(func(s *Snapshot) { s.Servers = []int{1, 10} }), 0, Start, time.Time{}, "update of 1 and 10 to 1.1 (servers)"},
		{"the list in another order", base(func(s *Snapshot) { s.Servers = []int{10, 2, 1} }), 0, Wait, time.Time{}, "up to date"},
		{"the first request", base(func(s *Snapshot) { s.Current = nil }), 0, Start, time.Time{}, "to 1.1 (release)"},
		{"no release yet", base(func(s *Snapshot) { s.Current, s.Release = nil, "" }), 0, Wait, time.Time{}, "no release is known"},
		{"none but an older release", base(func(s *Snapshot) { s.Current, s.Release = nil, "1.0" }), 0, Wait, time.Time{}, "the newest release, 1.0, is older than 1.1"},
		{"after recover", base(func(s *Snapshot) { s.Current, s.Recovery = nil, &record.Recovery{} }), 0, Start, time.Time{}, "(recover)"},
		{"after recover, window closed", base(func(s *Snapshot) { s.Current, s.Recovery, s.Config.Window = nil, &record.Recovery{}, window }), 0, Start, time.Time{}, "(recover)"},
		{"window closed", base(func(s *Snapshot) { s.Release, s.Config.Window = "1.2", window }), 0, Wait, t0().Add(10 * time.Hour), "the update window opens at 2018-11-07T22:00:00Z"},
		{"window closed, and no time to lose", base(func(s *Snapshot) { s.Release, s.Config.Window, s.Hurry = "1.2", window, true }), 0, Start, time.Time{}, "1.2"},
		{"a server was added of which no worker was seen", base(func(s *Snapshot) { s.Servers, s.Unseen = []int{1, 2, 3, 10}, []int{3} }), 0, Wait, time.Time{}, "up to date"},
		{"window open", base(func(s *Snapshot) { s.Release, s.Config.Window = "1.2", window }), 15 * time.Hour, Start, time.Time{}, "1.2"},
		{"window unknown", base(func(s *Snapshot) { s.Release, s.Config.WindowFault = "1.2", "no such zone" }), 0, Wait, time.Time{}, "cannot parse the update window, so it never opens: no such zone"},
		{"paused", base(func(s *Snapshot) { s.Release, s.Pause = "1.2", &record.Pause{Until: &hour, Why: "a fair"} }), 0, Wait, hour, "paused: a fair"},
		{"paused for good", base(func(s *Snapshot) { s.Release, s.Pause = "1.2", &record.Pause{} }), 0, Wait, time.Time{}, "paused"},
		{"pause over", base(func(s *Snapshot) { s.Release, s.Pause = "1.2", &record.Pause{Until: &past} }), 0, Start, time.Time{}, "1.2"},
		{"asked for", base(func(s *Snapshot) { s.Target = &record.Target{Version: "1.3", Passed: "1.1"} }), 0, Start, time.Time{}, "1.3 (operator)"},
		{"asked for, env none, window closed", base(func(s *Snapshot) {
			s.Target, s.Config.Env, s.Config.Window = &record.Target{Version: "1.3"}, "none", window
		}), 0, Start, time.Time{}, "1.3 (operator)"},
		{"downgrade asked for", base(func(s *Snapshot) { s.Target = &record.Target{Version: "1.0", Passed: "1.1"} }), 0, Wait, time.Time{}, "does not allow a downgrade"},
		{"downgrade asked for, after recover", base(func(s *Snapshot) {
			s.Current, s.OwnVersion, s.LastTo, s.Target = nil, "1.0", "1.1", &record.Target{Version: "1.0", Passed: "1.1"}
		}), 0, Wait, time.Time{}, "does not allow a downgrade"},
		{"an older release, after recover", base(func(s *Snapshot) { s.Current, s.OwnVersion, s.LastTo, s.Release = nil, "1.0", "1.1", "1.0" }), 0, Wait, time.Time{}, "older than 1.1"},
		{"an older release, after the recovery of a bad one that was taken back", base(func(s *Snapshot) {
			s.Current, s.OwnVersion, s.LastTo, s.Release, s.Recovery = nil, "1.1", "1.1", "1.0", &record.Recovery{Was: "1.0", Failed: "1.1"}
		}), 0, Start, time.Time{}, "to 1.0 (recover), back from 1.1, which failed"},
		{"a release older than what was there before the bad one", base(func(s *Snapshot) {
			s.Current, s.LastTo, s.Release, s.Recovery = nil, "1.1", "0.9", &record.Recovery{Was: "1.0", Failed: "1.1"}
		}), 0, Wait, time.Time{}, "the newest release, 0.9, is older than 1.0"},
		{"recovered, but the environment is none", base(func(s *Snapshot) {
			s.Current, s.Config.Env, s.Recovery = nil, "none", &record.Recovery{Was: "1.0", Failed: "1.1"}
		}), 0, Wait, time.Time{}, "env is none"},
		{"downgrade allowed", base(func(s *Snapshot) { s.Target = &record.Target{Version: "1.0", Passed: "1.1", Downgrade: true} }), 0, Start, time.Time{}, "1.0 (operator)"},
		{"a release since it was asked for", base(func(s *Snapshot) { s.Release, s.Target = "1.2", &record.Target{Version: "1.0", Passed: "1.1"} }), 0, Start, time.Time{}, "1.2 (release)"},

		{"nobody has answered", running(), 0, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"not all have answered", running(at(1), at(1)), 0, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"all have come", running(at(1), at(1), at(1)), 0, Open, time.Time{}, "step 1"},
		{"all have come further", running(at(4), at(3), finished()), 0, Open, time.Time{}, "step 3"},
		{"records of another request", running(at(1), at(1), func() record.Status { s := at(1); s.Request = 3; return s }()), 0, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"all are finished (fault 10)", running(finished(), finished(), finished()), 0, Finish, time.Time{}, "update of 1, 2 and 10 to 1.1 succeeded"},
		{"one hands over", handing(t0()), 0, Wait, t0().Add(lostTimeout), "runs"},
		{"one does not come up", handing(t0()), lostTimeout, Stop, time.Time{}, "server 1 installed 1.1, but no worker of that version started"},
		{"servers move, one after the other", with(running(at(1), at(1), at(1)), func(s *Snapshot) {
			s.Gate, s.StageSince, s.Witnessed = opened(1), t0().Add(50*time.Minute), true
		}), 100 * time.Minute, Note, time.Time{}, "runs"},
		{"one has failed", running(at(2), failed(1), at(1)), 0, Stop, time.Time{}, "server 2, step step: broken"},
		{"one had failed before the retry", with(running(at(2), failed(1), at(1)), func(s *Snapshot) { s.Current.Attempt, s.Gate = 2, opened(1) }), 0, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"the last fails, others are finished", running(finished(), finished(), failed(1)), 0, Stop, time.Time{}, "server 10"},
		{"nothing moves (fault 19)", with(running(at(2), at(1)), func(s *Snapshot) { s.Gate = opened(1) }), time.Hour + StallGrace, Stop, time.Time{}, "no progress for 1h0m0s; server 10 has not answered"},
		{"one lags", with(running(at(3), at(2), at(3)), func(s *Snapshot) { s.Gate = opened(2) }), time.Hour + StallGrace, Stop, time.Time{}, "no progress for 1h0m0s; server 2 is at step step"},
		{"the time is told now and then", since(0, 0), 30 * time.Second, Wait, t0().Add(time.Minute), "runs"},
		{"the time is told", since(0, 0), time.Minute, Note, time.Time{}, "runs"},
		{"the last leader's clock was late", since(3*time.Hour, 0), 4*time.Hour + StallGrace - time.Second, Note, time.Time{}, "runs"},
		{"the last leader's clock was too late", since(3*time.Hour, 0), 4*time.Hour + StallGrace, Stop, time.Time{}, "no progress"},
		{"the last leader's clock was as late as the time-out", since(time.Hour, 0), time.Hour + 2*StallGrace, Note, time.Time{}, "runs"},
		{"the last leader's clock was late, and it had waited", since(3*time.Hour, 10*time.Minute), 3*time.Hour + 50*time.Minute + StallGrace, Stop, time.Time{}, "no progress"},
		{"the last leader's clock was early", since(-3*time.Hour, 0), -2*time.Hour + StallGrace - time.Second, Note, time.Time{}, "runs"},
		{"the last leader's clock was too early", since(-3*time.Hour, 0), -2*time.Hour + StallGrace, Stop, time.Time{}, "no progress"},
		{"another leader since", since(time.Minute, 0), time.Hour + StallGrace - time.Second, Note, time.Time{}, "runs"},
		{"another leader since, too late", since(time.Minute, 0), time.Hour + StallGrace, Stop, time.Time{}, "no progress"},
		{"gone for a moment", with(running(at(1), at(1)), func(s *Snapshot) { s.Absent = map[int]time.Time{10: t0()} }), time.Second, Wait, t0().Add(absenceTimeout), "runs"},
		{"gone", with(running(at(1), at(1)), func(s *Snapshot) { s.Absent = map[int]time.Time{10: t0()} }), absenceTimeout, Warn, time.Time{}, "no worker is alive on server 10"},
		{"known to be gone", with(running(at(1), at(1)), func(s *Snapshot) {
			s.Absent, s.Current.Missing = map[int]time.Time{10: t0()}, []int{10}
		}), time.Minute, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"gone while it installs", handingOver(0), record.HandOverTimeout - time.Second, Wait, t0().Add(record.HandOverTimeout), "runs"},
		{"not back from the installation", handingOver(0), record.HandOverTimeout, Stop, time.Time{}, "server 10, step step: no worker has been alive there for 1m0s: the worker of 1.1 has not taken over"},
		{"gone in a later step", handingOver(1), record.HandOverTimeout, Wait, t0().Add(time.Hour + StallGrace), "runs"},
		{"gone while it installed, before the retry", retried(), 2*record.HandOverTimeout - time.Second, Note, time.Time{}, "runs"},
		{"not back after the retry", retried(), 2 * record.HandOverTimeout, Stop, time.Time{}, "has not taken over"},
		{"back", with(running(at(1), at(1)), func(s *Snapshot) { s.Current.Missing = []int{10} }), 0, Warn, time.Time{}, "servers are back"},

		{"stopped", with(base(nil), func(s *Snapshot) { s.Current, s.Release = ended(true), "1.2" }), 24 * time.Hour, Wait, time.Time{}, "stopped: server 2"},
		{"stopped, and nobody told", with(running(), func(s *Snapshot) { s.Current.Stop = true }), 0, Stop, time.Time{}, "stopped by hand"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			a := Next(tt.s, t0().Add(tt.after))
			if a.Verb != tt.verb || !a.Until.Equal(tt.until) || !strings.Contains(a.Why, tt.why) {
				t.Errorf("%s until %s: %q; want %s until %s: %q", a.Verb, a.Until, a.Why, tt.verb, tt.until, tt.why)
			}
			if (a.Verb == Wait) != (len(a.Changes) == 0) {
				t.Errorf("%s writes %v", a.Verb, a.Changes)
			}
		})
	}
}

func last(all []updater.Change) updater.Change { return all[len(all)-1] }

// TestNextWrites checks the changes that each verb writes in one transaction.
func TestNextWrites(t *testing.T) {
	now := t0()
	want := []updater.Change{
		updater.Put("status/current", record.Request{Version: "1.2", Servers: []int{1, 2, 10}, ID: 5, Attempt: 1, StartedAt: now, AttemptAt: now}),
		updater.Put("history/0000000005", record.History{ID: 5, By: "release", From: "1.1", To: "1.2", Servers: []int{1, 2, 10}, Result: "running", StartedAt: now, Attempts: []record.Attempt{{Number: 1, Result: "running", StartedAt: now}}}),
		updater.Put("outbox/5-1-started", record.Alert{ID: "5-1-started", Kind: "started", Request: 5, Version: "1.2", Servers: []int{1, 2, 10}, Message: "update of 1, 2 and 10 to 1.2 (release) begins", At: now}),
	}
	got := Next(base(func(s *Snapshot) { s.Release, s.Servers = "1.2", []int{10, 1, 2} }), now).Changes
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("start: %s", diff)
	}
	past := base(func(s *Snapshot) {
		s.Release, s.Target = "1.2", &record.Target{Version: "1.0", Passed: "1.1", Downgrade: true}
	})
	if diff := cmp.Diff(updater.Change{Key: "info/target"}, last(Next(past, now).Changes)); diff != "" {
		t.Errorf("start of another version than was asked for: %s", diff)
	}
	asked := base(func(s *Snapshot) { s.Target = &record.Target{Version: "1.3", Passed: "1.1"} })
	if c := last(Next(asked, now).Changes); c.Key == "info/target" {
		t.Error("start of what was asked for: that is forgotten")
	}
	want = []updater.Change{
		updater.Put("status/current", *request(func(r *record.Request) { r.Stop, r.EndedAt, r.Why = true, &now, "server 2, step step: broken" })),
		updater.Put("history/0000000004", record.History{ID: 4, To: "1.1", Result: "stopped", Why: "server 2, step step: broken", AtFault: []int{2}, EndedAt: &now, Attempts: []record.Attempt{
			{Number: 1, Result: "stopped", Why: "server 2, step step: broken", AtFault: []int{2}, StartedAt: now, EndedAt: &now},
		}}),
		updater.Put("outbox/4-1-stopped", record.Alert{ID: "4-1-stopped", Kind: "stopped", Request: 4, Version: "1.1", Servers: []int{2}, Message: "update to 1.1 stopped: server 2, step step: broken; after fixing that: neco retry; to install the newest release instead: neco recover", At: now}),
	}
	if diff := cmp.Diff(want, Next(running(at(1), failed(1)), now).Changes); diff != "" {
		t.Errorf("stop: %s", diff)
	}
	want = []updater.Change{
		updater.Put("status/current", *request(func(r *record.Request) { r.EndedAt = &now })),
		updater.Put("history/0000000004", record.History{ID: 4, To: "1.1", Result: "succeeded", EndedAt: &now, Attempts: []record.Attempt{{Number: 1, Result: "succeeded", StartedAt: now, EndedAt: &now}}}),
		updater.Put("outbox/4-1-succeeded", record.Alert{ID: "4-1-succeeded", Kind: "succeeded", Request: 4, Version: "1.1", Servers: []int{1, 2, 10}, Message: "update of 1, 2 and 10 to 1.1 succeeded", At: now}),
	}
	if diff := cmp.Diff(want, Next(running(finished(), finished(), finished()), now).Changes); diff != "" {
		t.Errorf("finish: %s", diff)
	}
}
