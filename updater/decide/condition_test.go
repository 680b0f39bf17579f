package decide

import (
	"strings"
	"testing"
	"time"

	"bijou/updater/record"
)

// TestCondition checks that one line shows why a fleet needs an operator and which command to run. It also
// checks the order of the reasons.
func TestCondition(t *testing.T) {
	asks := func(s *Snapshot) { s.Config.MaxCheckAge = 24 * time.Hour }
	failure := func(hours, tries int) func(*Snapshot) {
		return func(s *Snapshot) {
			asks(s)
			s.CheckFailure = &record.CheckFailure{
				Message: "401 Bad credentials", At: t0(), Since: t0().Add(time.Duration(-hours) * time.Hour), Tries: tries,
			}
		}
	}
	withdrawn := func(s *Snapshot) { s.Withdrawn = &record.Withdrawn{Version: "1.1", Newest: "1.0"} }
	ill := func(s *Snapshot) {
		i := s.Inventories[2]
		i.Ill, i.HealthAt = map[string]string{"cke": "cke.service does not run"}, i.At
		s.Inventories[2] = i
	}
	dated := func(s *Snapshot) {
		for lrn, i := range s.Inventories {
			i.At = t0()
			s.Inventories[lrn] = i
		}
	}

	for what, tt := range map[string]struct {
		s     Snapshot
		leads bool
		want  string
	}{
		"all is well":                 {wellKept(asks), true, "up to date: 1.1"},
		"checks have failed for long": {wellKept(failure(24, 3)), true, "degraded: all checks for releases have failed since 2018-11-06T12:00:00Z (3 tries): 401 Bad credentials; check the source of releases (neco config list), then run: neco update --now"},
		"not for so long":             {wellKept(failure(23, 300)), true, "up to date: 1.1"},
		"seldom":                      {wellKept(failure(48, 2)), true, "up to date: 1.1"},
		"by a former version":         {wellKept(func(s *Snapshot) { asks(s); s.CheckFailure = &record.CheckFailure{Message: "x", At: t0()} }), true, "up to date: 1.1"},
		"no releases are taken":       {wellKept(func(s *Snapshot) { failure(24, 3)(s); s.Config.Env = record.EnvNone }), true, "up to date: env is none, so there are no updates"},
		"where releases are cannot be read": {wellKept(func(s *Snapshot) {
			s.Config.Env, s.Config.SourceFault = record.EnvNone, "proxy cannot be read: it is no URL"
		}), true, "degraded: no updates: proxy cannot be read: it is no URL; to remove it: neco config unset proxy"},
		"and that is long ago": {wellKept(func(s *Snapshot) {
			failure(24, 3)(s)
			s.Config.Env, s.Config.WantedEnv = record.EnvNone, record.EnvProduction
			s.Config.SourceFault = "proxy cannot be read: it is no URL"
		}), true, "degraded: no updates: proxy cannot be read: it is no URL; to remove it: neco config unset proxy"},
		"env cannot be read": {wellKept(func(s *Snapshot) { s.Config.Env, s.Config.EnvFault = record.EnvNone, "it is not JSON" }), true,
			"degraded: no updates: env cannot be read: it is not JSON; to set it: neco config set env production"},
		"the window cannot be read": {wellKept(func(s *Snapshot) { s.Config.WindowFault = "it is no cron line" }), true,
			"degraded: cannot parse update-window, so it never opens: it is no cron line; to remove it: neco config unset update-window"},
		"a release cannot be had": {wellKept(func(s *Snapshot) {
			asks(s)
			s.Config.GitHubRepository = "bijou/boot"
			s.Release, s.CheckFailure = "1.2", &record.CheckFailure{Message: "503", Refused: "1.2", At: t0(), Since: t0(), Tries: 1}
		}), true, "degraded: cannot fetch release 1.2: 503; after fixing that: neco update --now"},
		"a release by mistake":    {wellKept(withdrawn), true, "degraded: servers run 1.1, which is no longer published and is newer than every published release; the newest is 1.0; publish a newer release, or go back: neco update --to 1.0 --allow-downgrade"},
		"another one was, before": {wellKept(func(s *Snapshot) { s.Withdrawn = &record.Withdrawn{Version: "9999.1.1-1", Newest: "1.0"} }), true, "up to date: 1.1"},
		"a component is ill":      {withFindings(func(s *Snapshot) { dated(s); ill(s) }), true, "degraded: server 2, cke: cke.service does not run; to repair that: neco repair"},
		"a former worker has carried that over": {
			withFindings(func(s *Snapshot) { ill(s); dated(s) }), true, "up to date: 1.1",
		},
		"the same on two servers": {withFindings(func(s *Snapshot) {
			for _, lrn := range []int{2, 10} {
				s.Inventories[lrn] = record.Inventory{Request: s.Current.ID, Differs: map[string][]string{"a": {"its artifact is old"}}}
			}
		}), true, "degraded: server 2, a: its artifact is old; the same on server 10; to repair that: neco repair"},
		"a worker is away": {withFindings(func(s *Snapshot) {
			delete(s.Present, 2)
			s.Absent = map[int]time.Time{2: t0().Add(-absenceTimeout)}
		}), true, "degraded: server 2: no worker is alive; on server 2, run: systemctl start neco-worker; if the server is gone for good: neco bootserver remove 2"},
		"nobody leads":    {wellKept(asks), false, "degraded: no neco-updater leads: no update begins, and no alert is sent; on a boot server, run: systemctl start neco-updater"},
		"nobody is there": {wellKept(func(s *Snapshot) { s.Present = map[int]record.Presence{} }), false, "degraded: no neco-updater and no neco-worker is alive; on each boot server, run: systemctl start neco-updater neco-worker"},
		"a twin": {wellKept(func(s *Snapshot) {
			s.Twins = map[int]record.Twin{2: {Host: "b", Folder: "/var/lib/neco", Why: "the claim is held by a"}}
		}), true, `degraded: two hosts claim to be server 2, and /var/lib/neco of host "b" stays idle: the claim is held by a; if the other host is gone for good: neco bootserver remove 2; neco bootserver add 2`},
		"it stops": {running(failed(1)), true, "stopped: server 1, step step: broken; after fixing that: neco retry; to install the newest release instead: neco recover"},
		"it runs, and a server is away": {with(running(at(1), at(1), at(1)), func(s *Snapshot) {
			s.Current.Missing = []int{2}
		}), true, "updating: update to 1.1 runs, but no worker is alive on server 2, at step step; on server 2, run: systemctl start neco-worker; if the server is gone for good: neco bootserver remove 2"},
		"it runs, and nobody leads": {with(running(at(1), at(1), at(1)), func(s *Snapshot) { s.Present = map[int]record.Presence{1: {}} }), false,
			"updating: update to 1.1 runs, but no neco-updater leads: no update begins, and no alert is sent; on a boot server, run: systemctl start neco-updater"},
		"a recovery waits": {wellKept(func(s *Snapshot) {
			s.Current, s.Recovery, s.Pause = nil, &record.Recovery{Was: "1.0", Failed: "1.1"}, &record.Pause{Why: "a look"}
			s.Release = "1.1"
		}), true, "stopped: recovery waits: paused: a look; to let the update begin: neco resume"},
	} {
		t.Run(what, func(t *testing.T) {
			if tt.s.Current != nil && !tt.s.Current.Ended() {
				if a := Next(tt.s, t0()); a.Verb == Stop {
					applyTo(&tt.s, a.Changes)
				}
			}

			c := tt.s.Condition(t0(), tt.leads)
			if got := c.State + ": " + c.String(); got != tt.want {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestLeaderIsDueBy checks that a missing leader is not reported until the term of a lease has passed since
// the previous leader left. If the clocks differ, this time grows by at most the difference.
func TestLeaderIsDueBy(t *testing.T) {
	for what, tt := range map[string]struct {
		ago  time.Duration
		want time.Duration // the time until a leader must be present, or 0
	}{
		"just now":                      {0, 10 * time.Second},
		"a moment ago":                  {9 * time.Second, time.Second},
		"a lease ago":                   {10 * time.Second, 0},
		"by a clock that is ahead":      {-10 * time.Second, 20 * time.Second},
		"by a clock that is far ahead":  {-time.Hour, 0},
		"by a clock that is far behind": {time.Hour, 0},
	} {
		t.Run(what, func(t *testing.T) {
			s := Snapshot{HandedOver: &record.HandOver{At: t0().Add(-tt.ago)}}
			due := s.LeaderIsDueBy(t0())
			switch {
			case due.IsZero() && tt.want == 0:
			case due.IsZero() || due.Sub(t0()) != tt.want:
				t.Errorf("it is due by %s, want in %s", due, tt.want)
			}
		})
	}

	if due := (Snapshot{}).LeaderIsDueBy(t0()); !due.IsZero() {
		t.Errorf("where none has made way it is due by %s", due)
	}
}

// TestIllOnce checks that an ill component is reported once, even if its message changes. If it was healthy
// since, it is reported again.
func TestIllOnce(t *testing.T) {
	s := wellKept(func(*Snapshot) {})
	s.Config.SurveyInterval = 20 * time.Second
	alerts, now := 0, t0()
	look := func(reason string) {
		i := record.Inventory{Request: s.Current.ID, At: now, HealthAt: now}
		if reason != "" {
			i.Ill = map[string]string{"cke": reason}
		}
		s.Inventories[2] = i

		for end := now.Add(20 * time.Second); now.Before(end); now = now.Add(time.Second) {
			a := Next(s, now)
			if a.Verb != Warn && (a.Until.IsZero() || a.Until.After(now.Add(time.Second))) {
				continue
			}
			for _, c := range a.Changes {
				if _, isAlert := c.Value.(record.Alert); isAlert {
					alerts++
				}
			}
			applyTo(&s, a.Changes)
		}
	}

	for _, step := range []struct {
		reason string
		alerts int
	}{{"process 1 has died", 0}, {"process 2 has died", 1}, {"", 1}, {"process 3 has died", 1}, {"process 4 has died", 2}} {
		look(step.reason)
		if alerts != step.alerts {
			t.Errorf("after %q: %d alerts, want %d", step.reason, alerts, step.alerts)
		}
	}

	if found := s.Degraded.Findings; len(found) != 1 || !strings.Contains(found[0].What, "process 4") {
		t.Errorf("it has recorded %+v", found)
	}
}

// TestFindingsThatNobodyHasLookedAt checks that a finding does not end because its worker is away for a
// moment or because other components are repaired. Otherwise it would be reported again.
func TestFindingsThatNobodyHasLookedAt(t *testing.T) {
	differs := func(s *Snapshot) {
		s.Inventories[2] = record.Inventory{Request: s.Current.ID, Differs: map[string][]string{"cke": {"its artifact is old"}}}
	}
	repaired := func(components ...string) Snapshot {
		return with(withFindings(differs), func(s *Snapshot) {
			s.Current.ID++
			s.Current.Repair, s.Current.Components = true, components
			for lrn, w := range s.Workers {
				w.Request = s.Current.ID
				s.Workers[lrn] = w
			}
		})
	}

	for what, tt := range map[string]struct {
		s    Snapshot
		want int
	}{
		"its worker is away":         {with(withFindings(differs), func(s *Snapshot) { delete(s.Present, 2) }), 1},
		"a repair of something else": {repaired("serf"), 1},
		"a repair of that":           {repaired("cke"), 0},
		"a repair of all":            {repaired(), 0},
		"somebody has looked, and all is well": {with(withFindings(differs), func(s *Snapshot) {
			s.Inventories[2] = record.Inventory{Request: s.Current.ID}
		}), 0},
	} {
		t.Run(what, func(t *testing.T) {
			if found := tt.s.Findings(t0()); len(found) != tt.want {
				t.Errorf("%+v, want %d", found, tt.want)
			}
		})
	}
}
