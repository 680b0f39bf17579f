// Package requests carries out the requests that units' agents make to the provisioner's leader: it removes
// units that are dead and relations that have ended, and adds subordinate units.
//
// Next decides about plain values. Run reads the records and carries out the decisions, as long as its
// process leads. An agent records a request in the same commit as the fact that causes it; see state.Request.
// The leader removes the request in its last write. So if either of them is killed, the next leader finishes
// the work.
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
	searchInterval = 10 * time.Minute // how often the leader searches for work that nobody has requested
	maxParallel    = 8                // how many requests are carried out at the same time
	caseTimeout    = 30 * time.Second // how long one request may delay the others; the next round continues with it
)

// Run carries out requests as they come, in transactions of update. It returns nil when ctx is done, and an
// error when the leadership is lost, or the store is gone or closed. After any other error it tries again, and
// logs the error unless it is the same as the last. At the beginning, and every ten minutes, it also finishes
// removals that an older binary or an operator's command has not finished.
func Run(ctx context.Context, st *state.State, update state.Updater, log *slog.Logger) error {
	l := &loop{State: st, update: update, log: log}
	defer l.close()
	var retry backoff.Exponential

	lastLogged := "" // the text of the last error, or empty after a round without errors

	for {
		err := l.runRound(ctx)
		switch {
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, state.ErrSessionLost), errors.Is(err, state.ErrStoreGone), errors.Is(err, state.ErrClosed):
			return err
		case err == nil:
			lastLogged = ""
			retry.Reset()
		case err.Error() != lastLogged:
			log.Warn("provisioner cannot carry out requests of agents", "error", err)
			lastLogged = err.Error()
		}

		pause := time.Until(l.lastSearch.Add(searchInterval)) // until the next search
		if err != nil {
			pause = retry.Next()
		}
		l.awaitRequest(ctx, pause)
	}
}

// loop is the work of one leadership. Only one goroutine may use it.
type loop struct {
	*state.State
	update state.Updater // conditional on the leadership
	log    *slog.Logger

	lastSearch time.Time      // when the last successful round with readEverything began
	watcher    *state.Watcher // nil without a watch
}

// close closes the watcher, if there is one. The next round starts a new watch.
func (l *loop) close() {
	if l.watcher != nil {
		l.watcher.Close()
		l.watcher = nil
	}
}

// runRound reads the requests and carries them out. Every searchInterval, it also finds and carries out work
// that nobody has requested.
func (l *loop) runRound(ctx context.Context) error {
	begin := time.Now()
	read := readRequested
	isSearch := begin.Sub(l.lastSearch) >= searchInterval
	if isSearch {
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

	// The watch begins at the revision of the read, so that it misses no request.
	if l.watcher == nil {
		if l.watcher, err = l.Watch(ctx, revision, state.WatchRequests()); err != nil {
			return err
		}
	}
	if err := l.carryOutAll(ctx, cases); err != nil {
		return err
	}

	// After an error, the next round searches again.
	if isSearch {
		l.lastSearch = begin
	}
	return nil
}

// awaitRequest returns after the pause, when ctx is done, or as soon as there are new requests. Without a watch,
// it does not notice new requests. If the watch breaks, it pauses for at most another second, and the next round
// starts a new watch.
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
			// The leader deletes requests that it has carried out.
			if !c.Deleted {
				return
			}
		}
	}

	// The caller checks its own context.
	_ = backoff.Sleep(limit, pause)
}

// carryOutAll carries out all cases, at most maxParallel at the same time. If one fails, carryOutAll still tries
// the other cases, and returns all errors. A case with a damaged record is reported, and is not an error.
func (l *loop) carryOutAll(ctx context.Context, cases []Case) error {
	errs := make([]error, len(cases))
	slots := make(chan struct{}, maxParallel) // has an element for each running case; its buffer is the limit
	var wg sync.WaitGroup
	for i, c := range cases {
		slots <- struct{}{}
		wg.Go(func() {
			limit, cancel := context.WithTimeout(ctx, caseTimeout)
			defer cancel()
			// Skips reports a damaged record.
			if err := l.carryOut(limit, c); !l.Skips(err) {
				errs[i] = err
			}
			<-slots
		})
	}

	wg.Wait()
	return errors.Join(errs...)
}

// carryOut carries out the decision about a case. The transactions that change a unit or a relation read its
// record again. It is not an error if the unit or relation no longer exists, or if nothing is left to do.
func (l *loop) carryOut(ctx context.Context, c Case) error {
	step := Next(c)
	l.log.Debug("provisioner carries out a request of an agent", "step", step, "unit", c.Request.Unit, "relation", c.Relation)

	switch step {
	case Keep:
		return nil
	case Forget:
		// end only removes the request.
		return l.end(ctx, c, func(*state.Tx) error { return nil })
	case RemoveUnit:
		// The removal of the unit also removes its request.
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

// end makes the last write for a request with do, and removes the request in the same transaction. If do
// returns ErrNotFound or ErrDead, the write is no longer needed, and end only removes the request.
func (l *loop) end(ctx context.Context, c Case, do func(tx *state.Tx) error) error {
	err := l.update(ctx, func(tx *state.Tx) error {
		err := do(tx)
		if err != nil && !errors.Is(err, state.ErrNotFound) && !errors.Is(err, state.ErrDead) {
			return err
		}

		// The end of a relation that no agent has requested has no unit, and no record to remove.
		if c.Request.Unit != "" {
			tx.RemoveRequest(c.Request)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("cannot %s: %w", describe(c), err)
	}

	return nil
}

// describe returns the write that end makes for a case in words, for an error that begins with "cannot".
func describe(c Case) string {
	switch Next(c) {
	case AddSubordinate:
		return fmt.Sprintf("add a subordinate to unit %q in relation %d", c.Request.Unit, c.Relation)
	case RemoveRelation:
		return fmt.Sprintf("remove relation %d", c.Relation)
	default:
		return fmt.Sprintf("drop a request of unit %q", c.Request.Unit)
	}
}
