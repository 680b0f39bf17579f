package opener

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// revokeTimeout is how long Close tries to revoke the leases. What it cannot
// revoke expires.
const revokeTimeout = 5 * time.Second

// GrantedLease is a lease that the store has granted, and what the store does for it.
type GrantedLease struct {
	ID          store.LeaseID
	TTL         time.Duration
	RequestedAt time.Time // before the store was asked for it

	// Refresh asks the store once, within ctx, which ends with the TTL at the
	// latest. lives is false if the lease was lost.
	Refresh func(ctx context.Context) (lives bool, err error)
	// Revoke ends the lease and deletes its keys. It is no error if it was lost.
	Revoke func(ctx context.Context) error
}

// lease is one that an opener keeps alive: its goroutine refreshes it three
// times in a TTL.
type lease struct {
	GrantedLease
	o    *Opener
	done chan struct{}

	once sync.Once
	stop chan struct{}
}

// KeepLease keeps the lease alive until it is closed or lost. ErrClosed: the opener is
// being closed, and the lease expires unused.
func (o *Opener) KeepLease(t GrantedLease) (store.Lease, error) {
	l := &lease{GrantedLease: t, o: o, done: make(chan struct{}), stop: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return nil, store.ErrClosed
	}
	o.leases[l] = true
	o.tasks.Go(func() {
		defer close(l.done) // what is over is not held any more
		defer o.removeLease(l)
		l.refreshLoop()
	})
	return l, nil
}

func (o *Opener) removeLease(l *lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.leases, l)
}

// AbandonLeases lets the leases expire, as the end of the process would, and answers
// how to revoke each. There are no new ones after it.
func (o *Opener) AbandonLeases() (revoke []func(ctx context.Context) error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.closing = true
	for l := range o.leases {
		l.stopRefresh()
		revoke = append(revoke, l.Revoke)
	}
	clear(o.leases)
	return revoke
}

// LoseLeases ends the leases that there are as if they were lost: whoever holds one
// needs a new one.
func (o *Opener) LoseLeases() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leases {
		l.stopRefresh()
	}
}

func (o *Opener) revokeAll() {
	ctx, cancel := context.WithTimeout(o.ctx, revokeTimeout)
	defer cancel()
	for _, revoke := range o.AbandonLeases() {
		_ = revoke(ctx) // or it expires
	}
}

func (l *lease) ID() store.LeaseID     { return l.GrantedLease.ID }
func (l *lease) Done() <-chan struct{} { return l.done }
func (l *lease) stopRefresh()          { l.once.Do(func() { close(l.stop) }) }

func (l *lease) Close(ctx context.Context) error {
	l.stopRefresh()
	if l.o.ctx.Err() != nil {
		return nil // the opener has revoked it
	}
	err := l.Revoke(ctx)
	if err == nil { // the store answers, so that keep ends, too
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	}
	return err
}

// refreshLoop refreshes the lease until it is closed, is lost, or has not been
// refreshed for its TTL. The time counts from before each refresh, so that Done
// is closed before others may expire it.
func (l *lease) refreshLoop() {
	refreshed, next := l.RequestedAt, l.TTL/3
	for l.sleepUnlessStopped(next) {
		now := time.Now()
		lives, err := l.refreshOnce(refreshed.Add(l.TTL))
		if err == nil && !lives {
			return
		}
		next = l.TTL / 20 // the store may answer soon
		if err == nil {
			refreshed, next = now, l.TTL/3
		}
		left := l.TTL - time.Since(refreshed)
		if left <= 0 {
			return
		}
		next = min(next, left)
	}
}

// sleepUnlessStopped waits, and says if the lease is still wanted.
func (l *lease) sleepUnlessStopped(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.stop:
	case <-l.o.gone:
	}
	return false
}

func (l *lease) refreshOnce(deadline time.Time) (lives bool, err error) {
	ctx, cancel := context.WithDeadline(l.o.ctx, deadline)
	defer cancel()
	return l.Refresh(ctx)
}
