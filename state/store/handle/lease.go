package handle

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// lease is refreshed by a goroutine of its own three times in a TTL.
type lease struct {
	GrantedLease
	o    *Opener
	done chan struct{}

	once sync.Once
	stop chan struct{}
}

// KeepLease keeps the lease alive until it is closed or lost. It returns ErrClosed if the
// opener is being closed; then the lease expires unused.
func (o *Opener) KeepLease(t GrantedLease) (store.Lease, error) {
	l := &lease{GrantedLease: t, o: o, done: make(chan struct{}), stop: make(chan struct{})}
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

// AbandonLeases stops refreshing the leases, which then expire, as the end of the process
// would, and returns how to revoke each. There are no new ones after it.
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

// LoseLeases ends all present leases as if they were lost, so that their holders need new ones.
func (o *Opener) LoseLeases() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.leases {
		l.stopRefresh()
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
	if err != nil {
		return err
	}

	// The store answers, so that refreshLoop ends, too.
	select {
	case <-l.done:
	case <-ctx.Done():
	}

	return nil
}

// refreshLoop ends when the lease is closed, is lost, or has not been refreshed for its TTL. The
// time counts from before each refresh, so that Done is closed before others may expire the lease.
func (l *lease) refreshLoop() {
	refreshed := l.RequestedAt
	next := l.TTL / 3

	for l.sleepUnlessStopped(next) {
		now := time.Now()
		lives, err := l.refreshOnce(refreshed.Add(l.TTL))
		if err == nil && !lives {
			return
		}

		next = l.TTL / 20 // the store may answer soon
		if err == nil {
			refreshed = now
			next = l.TTL / 3
		}
		left := l.TTL - time.Since(refreshed)
		if left <= 0 {
			return
		}
		next = min(next, left)
	}
}

// sleepUnlessStopped reports whether the lease is still wanted.
func (l *lease) sleepUnlessStopped(d time.Duration) bool {
	select {
	case <-time.After(d):
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
