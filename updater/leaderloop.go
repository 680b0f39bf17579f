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
	leadership  *state.KeyLeadership
	afterOutage bool // the store was away before: servers may still be coming back, too
}

// Many workers come to a step at about the same time, and one look does for all: once
// something has changed, more of the same is waited for, five times as long as a
// look takes and no longer than that.
const maxBatchDelay = 100 * time.Millisecond

// runDecisions obeys Next.
func (l leader) runDecisions(ctx context.Context) error {
	f := newLeaderCache(l.Store, l.Version)
	return withFeed(ctx, f.feed, func() error {
		m := newObservations(l.afterOutage)
		for told := ""; ctx.Err() == nil; {
			began := time.Now()
			a, err := l.actOnCache(ctx, f, m)
			took := time.Since(began)
			switch {
			case endsLeadership(err) || ctx.Err() != nil:
				return err
			case err != nil:
				m.afterOutage = true
				slog.Warn("cannot decide what is next; trying again", "error", err)
				sleep(ctx, retryInterval)
				continue
			}
			if a.Why != told {
				told = a.Why
				slog.Info(string(a.Verb), "why", a.Why)
			}
			if a.Verb == Wait {
				waitUntil(ctx, f.feed.ready, m.clock.toWallClock(a.Until))
				sleep(ctx, min(5*took, maxBatchDelay))
			}
		}
		return nil
	})
}

// withFeed runs f beside its sight of the store, and ends both.
func withFeed(ctx context.Context, s *changeFeed, f func() error) error {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.run(ctx) // of a store that is gone f hears itself
	}()
	defer func() { cancel(); <-done }()
	return f()
}

// actOnCache decides on what is known, and does it. To wait, and to open a gate, that is
// enough; anything else is decided again on all that there is.
func (l leader) actOnCache(ctx context.Context, f *leaderCache, m *observations) (Action, error) {
	if err := f.catchUp(ctx); err != nil {
		return Action{}, err
	}
	a := l.nextAction(f.snapshot, m)
	if a.Verb == Wait {
		return a, nil
	}
	if opened, err := l.openGate(ctx, f, a); opened || err != nil {
		return a, err
	}
	f.stale = true
	return l.actInTransaction(ctx, m)
}

// openGate opens a gate, if the request is still the one that was decided on, and this is
// the leader. That the servers have come to the step does not change any more.
func (l leader) openGate(ctx context.Context, f *leaderCache, a Action) (opened bool, err error) {
	if a.Verb != Open {
		return false, nil
	}
	gate := a.Changes[0]
	at, err := l.leadership.PutIf(ctx, Keys().Current(), f.requestRevision, gate.Key, gate.Value)
	if at == 0 || err != nil {
		return false, err
	}
	f.snapshot.Gate, _ = gate.Value.(record.Gate)
	return true, nil
}

// nextAction asks what is next.
func (l leader) nextAction(s Snapshot, m *observations) Action {
	now := m.now(s.Current)
	m.update(&s, s.Present, now)
	l.Metrics.observe(s)
	return Next(s, now)
}

// actInTransaction reads, asks, and does exactly that, as one transaction: it is written only
// if nothing that was read has changed, and this is the leader.
func (l leader) actInTransaction(ctx context.Context, m *observations) (a Action, err error) {
	err = l.leadership.Update(ctx, func(tx *state.KeyTx) error {
		s, err := Load(tx.KeyView, l.Version)
		if err != nil {
			return err
		}
		if s.Activities, err = LoadActivities(tx.KeyView); err != nil {
			return err
		}
		a = l.nextAction(s, m)
		return Apply(tx, a.Changes)
	})
	return a, err
}
