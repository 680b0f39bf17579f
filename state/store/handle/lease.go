package handle

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// lease is a lease that a goroutine refreshes three times during its TTL.
type lease struct {
	GrantedLease
	o    *Opener
	done chan struct{}

	once sync.Once
	stop chan struct{}
}

// KeepLease returns the granted lease as a [store.Lease], and keeps it alive until it is closed or lost. It
// returns ErrClosed if the opener is closed or being closed. In that case the lease expires.
func (o *Opener) KeepLease(granted GrantedLease) (store.Lease, error) {
	l := &lease{GrantedLease: granted, o: o, done: make(chan struct{}), stop: make(chan struct{})}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closing {
		return nil, store.ErrClosed
	}

	o.leases[l] = true
	o.tasks.Go(func() {
		l.refreshLoop()
		o.mu.Lock()
		delete(o.leases, l)
		o.mu.Unlock()
		close(l.done)
	})

	return l, nil
}

// AbandonLeases stops refreshing the leases, so that they expire as if the process had exited. It returns a
// function for each lease that revokes the lease immediately. After AbandonLeases, KeepLease returns ErrClosed.
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

// LoseLeases ends all current leases as if the store had lost them. Their holders must ask for new leases.
func (o *Opener) LoseLeases() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leases {
		// The lease's goroutine then removes the lease from o.leases, and closes Done.
		l.stopRefresh()
	}
}

func (l *lease) ID() store.LeaseID     { return l.GrantedLease.ID }
func (l *lease) Done() <-chan struct{} { return l.done }
func (l *lease) stopRefresh()          { l.once.Do(func() { close(l.stop) }) }

// Close revokes the lease, and then waits until Done is closed or ctx is done. If it cannot revoke the lease, it
// returns the error without waiting. If the opener is closed, Close sends no request, since the opener's own Close
// revokes leases.
func (l *lease) Close(ctx context.Context) error {
	l.stopRefresh()
	if l.o.ctx.Err() != nil {
		return nil
	}

	err := l.Revoke(ctx)
	if err != nil {
		return err
	}

	// The store answers, so refreshLoop ends soon.
	select {
	case <-l.done:
	case <-ctx.Done():
	}

	return nil
}

// refreshLoop refreshes the lease until the lease or the opener is closed, the lease is lost, the store is gone, or
// the lease was not refreshed for its TTL. The TTL counts from the time before a refresh is sent, so that Done is
// closed before the store can end the lease.
func (l *lease) refreshLoop() {
	// Refresh long before the TTL ends, so that there is time for retries. After an error, retry sooner.
	refreshedAt := l.RequestedAt
	pause := l.TTL / 3

	for l.sleepUnlessStopped(pause) {
		sentAt := time.Now()
		lives, err := l.refreshOnce(refreshedAt.Add(l.TTL))
		switch {
		case err != nil:
			// The store may answer again soon.
			pause = l.TTL / 20
		case !lives:
			return
		default:
			refreshedAt = sentAt
			pause = l.TTL / 3
		}

		left := l.TTL - time.Since(refreshedAt)
		if left <= 0 {
			return
		}
		// Wake at the latest when the TTL ends.
		pause = min(pause, left)
	}
}

// sleepUnlessStopped sleeps for d. It returns false early if the lease is stopped or the store is gone.
func (l *lease) sleepUnlessStopped(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-l.stop:
	case <-l.o.gone:
	}

	return false
}

// refreshOnce sends one request to refresh the lease, and waits for the answer until the deadline.
func (l *lease) refreshOnce(deadline time.Time) (lives bool, err error) {
	ctx, cancel := context.WithDeadline(l.o.ctx, deadline)
	defer cancel()
	return l.Refresh(ctx)
}
