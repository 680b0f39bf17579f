package updater

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// leader is an updater that leads.
type leader struct {
	UpdaterOptions
	leadership *state.KeyLeadership
}

// Many workers come to a step at about the same time, and one look does for all: once
// something has changed, more of the same is waited for, five times as long as a
// look takes and no longer than that.
const gathering = 100 * time.Millisecond

// decide obeys Next.
func (l leader) decide(ctx context.Context) error {
	f := newFold(l.Store, l.Version)
	return watching(ctx, func(ctx context.Context) { _ = f.sight.run(ctx) }, func() error {
		m := &memory{clock: newClock(), absent: map[int]time.Time{}}
		for told := ""; ctx.Err() == nil; {
			began := time.Now()
			a, err := l.act(ctx, f, m)
			took := time.Since(began)
			switch {
			case over(err) || ctx.Err() != nil:
				return err
			case err != nil:
				slog.Warn("cannot decide what is next; trying again", "error", err)
				pause(ctx, again)
				continue
			}
			if a.Why != told {
				told = a.Why
				slog.Info(string(a.Verb), "why", a.Why)
			}
			if a.Verb == Wait {
				await(ctx, f.sight.bell, m.clock.outside(a.Until))
				pause(ctx, min(5*took, gathering))
			}
		}
		return nil
	})
}

// watching runs f beside what watches the store, and ends both.
func watching(ctx context.Context, watch func(ctx context.Context), f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		watch(ctx)
	}()
	defer func() { cancel(); <-done }()
	return f()
}

// act decides on what is known, and does it. To wait, and to open a gate, that is
// enough; anything else is decided again on all that there is.
func (l leader) act(ctx context.Context, f *fold, m *memory) (Action, error) {
	if err := f.catchUp(ctx); err != nil {
		return Action{}, err
	}
	a := l.next(f.s, f.present, m)
	if a.Verb == Wait {
		return a, nil
	}
	if opened, err := l.open(ctx, f, a); opened || err != nil {
		return a, err
	}
	f.behind = true
	return l.turn(ctx, m)
}

// open opens a gate, if the request is still the one that was decided on, and this is
// the leader. That the servers have come to the step does not change any more.
func (l leader) open(ctx context.Context, f *fold, a Action) (opened bool, err error) {
	if a.Verb != Open {
		return false, nil
	}
	gate := a.Changes[0]
	at, err := l.leadership.PutIf(ctx, Keys().Current(), f.request, gate.Key, gate.Value)
	if at == 0 || err != nil {
		return false, err
	}
	f.s.Gate, _ = gate.Value.(record.Gate)
	return true, nil
}

// next asks what is next.
func (l leader) next(s Snapshot, present map[int]record.Presence, m *memory) Action {
	now := m.now(s.Current)
	s.Absent = absentees(s, present, m.absent, now)
	s.Since, s.Waited = m.since(s, now)
	l.Metrics.saw(s)
	return Next(s, now)
}

// turn reads, asks, and does exactly that, as one transaction: it is written only
// if nothing that was read has changed, and this is the leader.
func (l leader) turn(ctx context.Context, m *memory) (a Action, err error) {
	err = l.leadership.Update(ctx, func(tx *state.KeyTx) error {
		s, err := Load(tx.KeyView, l.Version)
		if err != nil {
			return err
		}
		present, err := LoadPresences(tx.KeyView)
		if err != nil {
			return err
		}
		a = l.next(s, present, m)
		return Apply(tx, a.Changes)
	})
	return a, err
}

// memory is what a leader has seen itself.
type memory struct {
	clock  clock
	absent map[int]time.Time // since when it has seen no presence of servers
	seen   stage
	at     time.Time     // when it has first seen that
	waited time.Duration // for how long nothing had moved then, as another leader said
}

// now is the time. While an update runs it goes on evenly, so that no server is late
// or missing because somebody sets the machine's clock; what says when one may start
// is about that clock.
func (m *memory) now(r *record.Request) time.Time {
	if r == nil || r.Ended() {
		m.clock = newClock()
		clear(m.absent) // by the time as it was
	}
	return m.clock.now().UTC()
}

// stage is how far an attempt at a request has come.
type stage struct{ id, attempt, gate int }

// since is when the leader has first seen the request where it is, and for how long
// it had been there, as another leader had said.
func (m *memory) since(s Snapshot, now time.Time) (at time.Time, waited time.Duration) {
	r := s.Current
	if r == nil {
		m.seen = stage{}
		return time.Time{}, 0
	}
	if seen := (stage{r.ID, r.Attempt, s.Gate.Of(*r)}); seen != m.seen {
		m.seen, m.at, m.waited = seen, now, s.noted()
	}
	return m.at, m.waited
}

// absentees brings up to date since when servers of the request have been seen to
// be absent, first from this moment on: a new leader has not seen them before. Those
// that another leader has reported to be missing have been absent for long.
func absentees(s Snapshot, present map[int]record.Presence, absent map[int]time.Time, now time.Time) map[int]time.Time {
	for lrn := range absent {
		if _, ok := present[lrn]; ok || s.Current == nil || !slices.Contains(s.Current.Servers, lrn) {
			delete(absent, lrn)
		}
	}
	if s.Current == nil {
		return absent
	}
	for _, lrn := range s.Current.Servers {
		_, here := present[lrn]
		if _, known := absent[lrn]; !here && !known {
			absent[lrn] = now
			if slices.Contains(s.Current.Missing, lrn) {
				absent[lrn] = now.Add(-absence)
			}
		}
	}
	return absent
}
