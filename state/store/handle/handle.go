// Package handle has the code that the handles of all stores share. A handle is one process's open store. This
// package ends a handle's goroutines on Close, keeps its leases alive, and finds the watchers of a key.
//
// It is not a store, and does not read or write keys.
package handle

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// Opener is the part that the handles of all stores have in common. Each store's handle embeds an Opener. Its
// methods may be called from several goroutines.
type Opener struct {
	ctx    context.Context
	cancel context.CancelFunc

	goneOnce  sync.Once
	goneCause error // set before gone is closed
	gone      chan struct{}
	closeOnce sync.Once
	tasks     sync.WaitGroup

	mu      sync.Mutex // guards closing and leases; Go holds it, so that no task starts after Close
	closing bool
	leases  map[*lease]bool
}

// New returns an open Opener.
func New() *Opener {
	o := &Opener{gone: make(chan struct{}), leases: map[*lease]bool{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// Context returns the context of the opener's goroutines. It is done when the opener is closed.
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

// MarkGone calls MarkGoneBecause with the cause ErrStoreGone.
func (o *Opener) MarkGone() error { return o.MarkGoneBecause(store.ErrStoreGone) }

// MarkGoneBecause marks the store as gone, which cannot be undone. cause must wrap ErrStoreGone. If the store
// is already marked as gone, the first cause remains. MarkGoneBecause returns the first cause.
func (o *Opener) MarkGoneBecause(cause error) error {
	o.goneOnce.Do(func() {
		o.goneCause = cause
		close(o.gone)
	})
	return o.goneCause
}

// CheckUsable returns nil if the store can be used. Otherwise it returns ErrClosed if the opener is closed, the
// cause that was given to MarkGoneBecause if the store is gone, or ctx's error.
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

// Go runs f in a goroutine. It does nothing if the opener is closed. Close waits for f, so f must return when
// the context of the opener is done.
func (o *Opener) Go(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() == nil {
		o.tasks.Go(f)
	}
}

// Close revokes the leases, ends the opener's context, waits for its goroutines, and calls free, in which the store
// does its own clean-up. A second call only waits until the first has returned.
func (o *Opener) Close(free func()) {
	o.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(o.ctx, revokeTimeout)
		defer cancel()

		for _, revoke := range o.AbandonLeases() {
			// If this fails, the lease expires.
			_ = revoke(ctx)
		}

		// Go holds mu while it starts a goroutine, so none starts after cancel.
		o.mu.Lock()
		o.cancel()
		o.mu.Unlock()
		o.tasks.Wait()
		free()
	})
}

// revokeTimeout is how long Close tries to revoke the leases. A lease that it cannot revoke in that time
// expires by itself.
const revokeTimeout = 5 * time.Second

// GrantedLease is a lease that the store has granted, with the functions that refresh and revoke it.
type GrantedLease struct {
	ID          store.LeaseID
	TTL         time.Duration
	RequestedAt time.Time // the time before the request for the lease

	// Refresh sends one request to the store. ctx ends when the lease would expire, or earlier. lives is
	// false if the lease was lost.
	Refresh func(ctx context.Context) (lives bool, err error)
	// Revoke ends the lease and deletes its keys. It returns no error if the lease was lost.
	Revoke func(ctx context.Context) error
}
