package updater

import (
	"context"
	"log/slog"
	"time"

	"bijou/state"
	"bijou/updater/record"
)

// leader is an updater that leads.
type leader struct {
	UpdaterOptions
	leadership *state.KeyLeadership
	back       bool // the store was away before: servers may still be coming back, too
}

// Many workers come to a step at about the same time, and one look does for all: once
// something has changed, more of the same is waited for, five times as long as a
// look takes and no longer than that.
const gathering = 100 * time.Millisecond

// decide obeys Next.
func (l leader) decide(ctx context.Context) error {
	f := newFold(l.Store, l.Version)
	return watching(ctx, f.sight, func() error {
		m := newMemory(l.back)
		for told := ""; ctx.Err() == nil; {
			began := time.Now()
			a, err := l.act(ctx, f, m)
			took := time.Since(began)
			switch {
			case over(err) || ctx.Err() != nil:
				return err
			case err != nil:
				m.away = true
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

// watching runs f beside its sight of the store, and ends both.
func watching(ctx context.Context, s *sight, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.run(ctx) // of a store that is gone f hears itself
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
	a := l.next(f.s, m)
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
func (l leader) next(s Snapshot, m *memory) Action {
	now := m.now(s.Current)
	m.tell(&s, s.Present, now)
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
		if s.Activities, err = LoadActivities(tx.KeyView); err != nil {
			return err
		}
		a = l.next(s, m)
		return Apply(tx, a.Changes)
	})
	return a, err
}
