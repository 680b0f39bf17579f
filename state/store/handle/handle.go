// Package handle is the base of each store's handle in one process. It ends the handle's goroutines on Close
// or when the store is gone, keeps leases alive, and finds the watchers of a key.
//
// It is not a store, and does not read or write keys.
package handle

import (
	"context"
	"sync"
	"time"

	"bijou/state/store"
)

// Opener is the base of one handle for a store. The handle embeds it. Its methods may be called from several
// goroutines.
type Opener struct {
	ctx    context.Context
	cancel context.CancelFunc

	goneOnce  sync.Once
	goneCause error // set before gone is closed
	gone      chan struct{}
	closeOnce sync.Once
	tasks     sync.WaitGroup

	mu      sync.Mutex // ensures that no task starts after the end, and no lease after closing
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

// MarkGone marks the store as gone. It returns the cause given in the first such call.
func (o *Opener) MarkGone() error { return o.MarkGoneBecause(store.ErrStoreGone) }

// MarkGoneBecause marks the store as gone, which cannot be undone. cause must be an ErrStoreGone. It returns
// the cause given in the first call.
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

// Go runs f in a goroutine that Close waits for, unless the opener is closed. f must return when the opener
// is closed.
func (o *Opener) Go(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() == nil {
		o.tasks.Go(f)
	}
}

// Close revokes the leases, ends the opener, waits for its goroutines, and calls free. A second call only
// waits for the first.
func (o *Opener) Close(free func()) {
	o.closeOnce.Do(func() {
		ctx, cancel := context.WithTimeout(o.ctx, revokeTimeout)
		defer cancel()

		for _, revoke := range o.AbandonLeases() {
			// If this fails, the lease expires.
			_ = revoke(ctx)
		}
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
