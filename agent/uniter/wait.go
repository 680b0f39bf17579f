package uniter

import (
	"context"
	"strconv"
	"time"

	"bijou/state"
)

// wait waits for a change, the end of the hook in flight, a time (unless it is
// zero), or a slot (unless it is nil).
func (u *uniter) wait(ctx context.Context, snap Snapshot, until time.Time, slot turn) error {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(until.Sub(snap.Now), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}
	u.Loop.Rest()
	select {
	case <-u.watch.Events():
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

// follow watches what the snapshot was made of, from its revision on.
func (u *uniter) follow(ctx context.Context, snap Snapshot, revision int64) error {
	scopes := []state.Scope{
		state.WatchUnit(u.Unit), state.WatchService(snap.Unit.Service), state.WatchEnvironment(),
	}
	var about []string
	for _, id := range sortedKeys(snap.Relations) {
		scopes = append(scopes, state.WatchMembers(id, snap.Relations[id].RemoteService))
		about = append(about, strconv.Itoa(id))
	}
	return u.watch.Renew(ctx, u.State, revision, about, scopes...)
}
