// Package requests carries out what units' agents leave to the provisioner's leader: it removes units
// that are dead and relations that have ended, and makes subordinate units.
//
// Next decides, on plain values; Run reads and obeys, as long as it leads. An agent records a request in
// the commit of the fact from which it follows (state.Request), and the leader removes it with its last
// write, so that a kill of either leaves something that the next leader finishes.
package requests

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"bijou/state"
	"bijou/state/backoff"
)

const (
	lookInterval = 10 * time.Minute // how often it looks for what nobody has requested
	maxParallel  = 8                // how many requests are carried out at the same time
)

// Run carries out requests as they come, under the conditions of update, until ctx is done (nil), the
// leadership is lost or the store is gone. At first, and every ten minutes, it also does what nobody
// requests: what a former binary, or an operator's command, has left half-way. It logs other errors, and
// tries again.
func Run(ctx context.Context, st *state.State, update state.Updater, log *slog.Logger) error {
	l := &loop{State: st, update: update, log: log}
	defer l.close()
	var retry backoff.Exponential

	for said := ""; ; {
		err := l.runRound(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, state.ErrSessionLost), errors.Is(err, state.ErrStoreGone), errors.Is(err, state.ErrClosed):
			return err
		case err == nil:
			said = ""
			retry.Reset()
		case err.Error() != said: // what lasts is said once
			log.Warn("provisioner cannot do what agents request", "error", err)
			said = err.Error()
		}

		pause := time.Until(l.lastLook.Add(lookInterval))
		if err != nil {
			pause = retry.Next()
		}
		l.awaitRequest(ctx, pause)
	}
}

// loop is the work of one term. It is for one goroutine.
type loop struct {
	*state.State
	update   state.Updater // fenced by the leader's key
	log      *slog.Logger
	lastLook time.Time
	watcher  *state.Watcher // nil: nothing is watched
}

func (l *loop) close() {
	if l.watcher != nil {
		l.watcher.Close()
		l.watcher = nil
	}
}

// runRound reads what is requested and does it.
func (l *loop) runRound(ctx context.Context) error {
	begin := time.Now()
	read := readRequested
	looks := begin.Sub(l.lastLook) >= lookInterval
	if looks {
		read = readEverything
	}

	var cases []Case
	var revision int64
	err := l.View(ctx, func(v *state.View) (err error) {
		if cases, err = read(v); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return err
	}

	if l.watcher == nil {
		if l.watcher, err = l.Watch(ctx, revision, state.WatchRequests()); err != nil {
			return err
		}
	}
	if err := l.carryOutAll(ctx, cases); err != nil {
		return err
	}

	if looks {
		l.lastLook = begin
	}
	return nil
}

// awaitRequest returns after the pause, or as soon as there are new requests. Without a watch, which
// the next round begins again, it only pauses.
func (l *loop) awaitRequest(ctx context.Context, pause time.Duration) {
	limit, cancel := context.WithTimeout(ctx, pause)
	defer cancel()

	for l.watcher != nil {
		changes, err := l.watcher.Changes(limit)
		if limit.Err() != nil {
			return
		}
		if err != nil {
			l.close()
			pause = min(pause, time.Second)
			break
		}

		for _, c := range changes {
			if !c.Deleted { // those that are carried out go
				return
			}
		}
	}

	_ = backoff.Sleep(limit, pause)
}

// carryOutAll carries out all cases. If one fails, it still tries the others.
func (l *loop) carryOutAll(ctx context.Context, cases []Case) error {
	errs := make([]error, len(cases))
	places := make(chan struct{}, maxParallel)
	var wg sync.WaitGroup
	for i, c := range cases {
		places <- struct{}{}
		wg.Go(func() {
			if err := l.carryOut(ctx, c); !l.Skips(err) {
				errs[i] = err
			}
			<-places
		})
	}

	wg.Wait()
	return errors.Join(errs...)
}

// carryOut carries out what was decided about a case. Each transaction reads the records again, and does
// nothing if they have changed since the decision.
func (l *loop) carryOut(ctx context.Context, c Case) error {
	step := Next(c)
	l.log.Debug("provisioner does what an agent requests", "step", step, "unit", c.Request.Unit, "relation", c.Relation)

	switch step {
	case Keep:
		return nil
	case Forget:
		return l.end(ctx, c, func(*state.Tx) error { return nil })
	case RemoveUnit:
		return state.RemoveUnit(ctx, l.update, c.Request.Unit)
	case AddSubordinate:
		return l.end(ctx, c, func(tx *state.Tx) error { return tx.AddSubordinate(c.Relation, c.Request.Unit) })
	case RemoveRelation:
		return l.end(ctx, c, func(tx *state.Tx) error {
			r, err := tx.Relation(c.Relation)
			if err != nil {
				return err
			}
			return tx.RemoveRelationIfDone(r)
		})
	}

	panic("internal error: unknown step " + string(step))
}

// end does the last write that a request asks for, and removes the request with it. If an entity is being
// removed meanwhile, the request has no effect any more.
func (l *loop) end(ctx context.Context, c Case, do func(tx *state.Tx) error) error {
	err := l.update(ctx, func(tx *state.Tx) error {
		err := do(tx)
		if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrDead) {
			return err
		}

		if c.Request.Unit != "" {
			tx.RemoveRequest(c.Request)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot %s for unit %q: %w", Next(c), c.Request.Unit, err)
	}

	return nil
}
