package uniter

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/secrets"
)

// waitForChange also returns at the end of the hook in flight, at until (unless it is
// zero), and when t is granted (unless it is nil).
func (u *uniter) waitForChange(ctx context.Context, snap decide.Snapshot, until time.Time, t ticket) error {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(until.Sub(snap.Now), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}
	var ended <-chan struct{}
	if u.running != nil {
		ended = u.running.done
	}
	u.Loop.MarkUnbounded()
	select {
	case <-u.watch.Events():
	case <-t:
	case <-ended:
	case <-timeout:
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

func (u *uniter) renewWatch(ctx context.Context, snap decide.Snapshot, revision int64) error {
	scopes := []state.Scope{
		state.WatchUnit(u.Unit), state.WatchService(snap.Unit.Service), state.WatchEnvironment(),
	}
	var about []string
	for _, id := range slices.Sorted(maps.Keys(snap.Relations)) {
		scopes = append(scopes, state.WatchMembers(id, snap.Relations[id].RemoteService))
		about = append(about, strconv.Itoa(id))
	}
	if ids := snap.Secrets.IDs(); len(ids) > 0 {
		scopes, about = append(scopes, secrets.Watch(ids)), append(about, ids...)
	}
	return u.watch.Renew(ctx, u.State, revision, about, scopes...)
}
