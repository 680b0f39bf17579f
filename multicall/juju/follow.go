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
	// settleInterval bounds reads where the state is printed: a flood of changes costs ten
	// a second, not one each.
	settleInterval    = 100 * time.Millisecond
	awayRetryInterval = time.Second
)

// follower prints what a view of the state returns, again after each change.
type follower struct {
	o      *operator
	state  *state.State
	scopes []state.Scope // what is watched for changes
	// read returns a function that prints what it has read, once the view is over.
	read func(v *state.View) (print func() error, err error)

	settleInterval time.Duration // how long a change may draw others after it
	// pollTimeout, if set, is how long it may be until the next read without a change.
	pollTimeout func() time.Duration

	shown bool // something was shown: errors from now on may pass
	away  bool // the store cannot be reached
}

// follow blocks until ctx is done. It outlasts a store that goes away, and notes that once.
func (f *follower) follow(ctx context.Context) error {
	for ctx.Err() == nil {
		revision, err := f.showOnce(ctx)
		if err == nil {
			f.noteAway(nil)
			err = f.awaitChange(ctx, revision)
		}
		if ctx.Err() != nil || console.IsUnread(err) {
			break
		}

		pause := f.settleInterval
		if err != nil {
			if !f.shown || !errors.Is(err, state.ErrAway) { // waiting heals nothing else
				return err
			}
			f.noteAway(err)
			pause = awayRetryInterval
		}
		_ = backoff.Sleep(ctx, pause)
	}

	return nil
}

// showOnce reads in one view and prints afterwards, so that a slow terminal holds no view. It returns the
// view's revision.
func (f *follower) showOnce(ctx context.Context) (revision int64, err error) {
	var print func() error
	err = f.state.View(ctx, func(v *state.View) (err error) {
		if print, err = f.read(v); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil {
		return 0, err
	}
	if err := print(); err != nil {
		return 0, err
	}

	f.shown = true
	return revision, nil
}

// awaitChange blocks until something in the scopes has changed after the revision, or it is
// time to read again.
func (f *follower) awaitChange(ctx context.Context, revision int64) error {
	if f.pollTimeout != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.pollTimeout())
		defer cancel()
	}

	err := f.state.Await(ctx, revision, f.scopes...)
	if f.pollTimeout != nil && errors.Is(err, context.DeadlineExceeded) {
		return nil
	}

	return err
}

// noteAway prints a warning when the store becomes unreachable, and a line when it is reachable again.
func (f *follower) noteAway(err error) {
	switch {
	case err != nil && !f.away:
		f.o.note("warning: %v; waiting until it can be read again", err)
	case err == nil && f.away:
		f.o.note("going on")
	}
	f.away = err != nil
}
