package uniter

import (
	"context"
	"errors"
	"strconv"
	"time"

	"bijou/state"
)

// wait waits for a change after the revision, the end of the hook in flight, a
// time (unless it is zero), or a slot (unless it is nil).
func (u *uniter) wait(ctx context.Context, snap Snapshot, revision int64, until time.Time, slot turn) error {
	err := u.renew(ctx, snap, revision)
	if errors.Is(err, state.ErrCompacted) {
		return nil // the next snapshot is fresh
	}
	if err != nil {
		return err
	}
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(until.Sub(snap.Now), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}
	select {
	case err := <-u.watch.Events():
		return u.watch.Ended(err)
	case <-slot:
	case <-u.ended():
	case <-timeout:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// ended is closed when the hook in flight has ended; nil if there is none.
func (u *uniter) ended() <-chan struct{} {
	if u.hook == nil {
		return nil
	}
	return u.hook.done
}

// renew watches what the snapshot was made of.
func (u *uniter) renew(ctx context.Context, snap Snapshot, revision int64) error {
	scopes := []state.Scope{
		state.WatchUnit(u.Unit), state.WatchService(snap.Unit.Service), state.WatchEnvironment(),
	}
	var about []string
	for _, id := range sortedKeys(snap.Relations) {
		scopes = append(scopes, state.WatchRelation(id))
		about = append(about, strconv.Itoa(id))
	}
	return u.watch.Renew(ctx, u.State, revision, about, scopes...)
}
