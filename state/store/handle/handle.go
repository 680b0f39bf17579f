// Package handle is the base of a store's handle in one process, whichever store it is: its life,
// which ends with Close or with the store, the leases that it keeps alive, and the index of its
// watchers.
//
// It is not a store, and knows neither keys nor tables.
package handle

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// Opener is the base of one handle of a store, which embeds it. Its methods may be called
// from several goroutines.
type Opener struct {
	ctx    context.Context
	cancel context.CancelFunc

	goneOnce  sync.Once
	goneCause error // set before gone is closed
	gone      chan struct{}
	closeOnce sync.Once
	tasks     sync.WaitGroup

	mu      sync.Mutex // so that no task begins after the end, and no lease after closing
	closing bool
	leases  map[*lease]bool
}

// New returns an open one.
func New() *Opener {
	o := &Opener{gone: make(chan struct{}), leases: map[*lease]bool{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// Context returns a context that ends when the opener is closed, for its goroutines.
func (o *Opener) Context() context.Context { return o.ctx }

// Gone returns a channel that is closed when the store is gone.
func (o *Opener) Gone() <-chan struct{} { return o.gone }

// MarkGone marks the store as gone for ever, and returns ErrStoreGone.
func (o *Opener) MarkGone() error { return o.MarkGoneBecause(store.ErrStoreGone) }

// MarkGoneBecause marks the store as gone for ever, for a cause that is an ErrStoreGone. It
// returns the cause that the first call gave.
func (o *Opener) MarkGoneBecause(cause error) error {
	o.goneOnce.Do(func() {
		o.goneCause = cause
		close(o.gone)
	})
	return o.goneCause
}

// CheckUsable returns ErrClosed, the ErrStoreGone that marked the store as gone, or the error of the
// call's context if the store cannot be used.
func (o *Opener) CheckUsable(ctx context.Context) error {
	if o.ctx.Err() != nil {
		return store.ErrClosed
	}

	select {
	case <-o.gone:
		return o.goneCause
	default:
		return ctx.Err()
	}
}

// Go starts a goroutine that Close waits for, unless the opener is closed. It must end
// when the opener is closed.
func (o *Opener) Go(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() == nil {
		o.tasks.Go(f)
	}
}

// Close revokes the leases, ends the opener, waits for its goroutines, and calls free. It
// does so once: another call only waits for the first.
func (o *Opener) Close(free func()) {
	o.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(o.ctx, revokeTimeout)
		defer cancel()

		for _, revoke := range o.AbandonLeases() {
			_ = revoke(ctx) // or it expires
		}
		o.mu.Lock()
		o.cancel()
		o.mu.Unlock()
		o.tasks.Wait()
		free()
	})
}

// revokeTimeout is how long Close tries to revoke the leases. What it cannot revoke expires.
const revokeTimeout = 5 * time.Second

// GrantedLease is a lease that the store has granted, and how the store refreshes and revokes it.
type GrantedLease struct {
	ID          store.LeaseID
	TTL         time.Duration
	RequestedAt time.Time // before the store granted it

	// Refresh asks the store once, within ctx, which ends with the TTL at the
	// latest. lives is false if the lease was lost.
	Refresh func(ctx context.Context) (lives bool, err error)
	// Revoke ends the lease and deletes its keys. It is no error if it was lost.
	Revoke func(ctx context.Context) error
}

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
	if err == nil { // the store answers, so that refreshLoop ends, too
		select {
		case <-l.done:
		case <-ctx.Done():
		}
	}

	return err
}

// refreshLoop ends when the lease is closed, is lost, or has not been refreshed for its TTL. The
// time counts from before each refresh, so that Done is closed before others may expire the lease.
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
