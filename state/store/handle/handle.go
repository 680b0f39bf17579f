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

// Bound returns a context that ends with ctx, after the limit, or when the opener is closed, whichever
// comes first.
func (o *Opener) Bound(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(o.ctx, cancel)
	return ctx, func() { stop(); cancel() }
}

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
