package juju

import (
	"context"
	"errors"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/backoff"
)

const (
	// settleInterval is the pause after a read whose result is printed. Many changes in a row cost at most
	// ten reads a second, instead of one read for each change.
	settleInterval = 100 * time.Millisecond
	// awayRetryInterval is the pause before the next read from a store that is unreachable.
	awayRetryInterval = time.Second
)

// follower reads a view of the state and prints the result, once, or again after each change.
type follower struct {
	o      *operator
	state  *state.State
	scopes []state.Scope // watched for changes
	// read reads from the view. The function that it returns prints the result, after the view has ended.
	read func(v *state.View) (print func() error, err error)

	settleInterval time.Duration // how long to wait after each read for further changes
	// pollTimeout, if set, returns how long to wait for a change before the next read.
	pollTimeout func() time.Duration

	shown bool // whether a result was printed; from then on, follow waits for an unreachable store
	away  bool // whether the store was unreachable at the last attempt
}

// follow reads and prints until ctx is done, or until nothing reads the output any more. It returns no error
// in these cases. If the store becomes unreachable after a first result was printed, follow prints one warning and
// waits for the store. Any other error ends follow.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		revision, err := f.showOnce(ctx)
		if err == nil {
			f.noteAway(nil) // if the store was away, notes that it is reachable again
			err = f.awaitChange(ctx, revision)
		}
		if ctx.Err() != nil || console.IsUnread(err) {
			break
		}

		pause := f.settleInterval
		if err != nil {
			// Waiting helps only if the store is unreachable.
			if !f.shown || !errors.Is(err, state.ErrAway) {
				return err
			}
			f.noteAway(err)
			pause = awayRetryInterval
		}
		// Sleep fails only if ctx is done, which ends the loop.
		_ = backoff.Sleep(ctx, pause)
	}

	return nil
}

// showOnce reads in one view, and prints after the view has ended, so that a slow terminal does not keep the
// view open. It returns the view's revision.
func (f *follower) showOnce(ctx context.Context) (revision int64, err error) {
	var show func() error
	err = f.state.View(ctx, func(v *state.View) (err error) {
		if show, err = f.read(v); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := show(); err != nil {
		return 0, err
	}

	f.shown = true
	return revision, nil
}

// awaitChange blocks until a key in f.scopes has changed after the revision, or the time of f.pollTimeout is
// over. It returns nil in both cases.
func (f *follower) awaitChange(ctx context.Context, revision int64) error {
	if f.pollTimeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.pollTimeout())
		defer cancel()
	}

	err := f.state.Await(ctx, revision, f.scopes...)
	if f.pollTimeout != nil && errors.Is(err, context.DeadlineExceeded) {
		// It is time to read again. If the caller's own ctx has ended, follow notices that.
		return nil
	}

	return err
}

// noteAway prints a warning when the store becomes unreachable, and a line when it is reachable again. err is
// the error of the last read, or nil.
func (f *follower) noteAway(err error) {
	switch {
	case err != nil && !f.away:
		f.o.note("warning: %v; waiting until the state can be read again", err)
	case err == nil && f.away:
		f.o.note("continuing")
	}
	f.away = err != nil
}
