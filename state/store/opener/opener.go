// Package opener is what one process's side of a store has in common, whichever
// store it is: a life that ends with Close or with the store, the leases that it
// keeps alive, and the index of its watchers.
//
// It is no store and knows neither keys nor tables. Only the stores import it; of
// bijou it imports package store only.
package opener

import (
	"context"
	"sync"

	"bijou/state/store"
)

// Opener is one opener of a store. Its methods may be called from several goroutines.
type Opener struct {
	ctx    context.Context
	cancel context.CancelFunc

	goneOnce  sync.Once
	gone      chan struct{}
	closeOnce sync.Once
	tasks     sync.WaitGroup

	mu      sync.Mutex // so that no task begins after the end, and no lease after closing
	closing bool
	leases  map[*lease]bool
}

// New makes one that is open.
func New() *Opener {
	o := &Opener{gone: make(chan struct{}), leases: map[*lease]bool{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// Context ends when the opener is closed, for what runs on its account.
func (o *Opener) Context() context.Context { return o.ctx }

// Closed is closed when the opener is.
func (o *Opener) Closed() <-chan struct{} { return o.ctx.Done() }

// Gone is closed when the store is gone.
func (o *Opener) Gone() <-chan struct{} { return o.gone }

// MarkGone says that the store is gone, from now on for ever. It answers ErrStoreGone.
func (o *Opener) MarkGone() error {
	o.goneOnce.Do(func() { close(o.gone) })
	return store.ErrStoreGone
}

// CheckUsable says why the store cannot be used: ErrClosed, ErrStoreGone, or the
// error of the call's context.
func (o *Opener) CheckUsable(ctx context.Context) error {
	if o.ctx.Err() != nil {
		return store.ErrClosed
	}
	select {
	case <-o.gone:
		return store.ErrStoreGone
	default:
		return ctx.Err()
	}
}

// Go starts a goroutine that Close waits for, unless the opener is closed. It ends
// when Closed is.
func (o *Opener) Go(f func()) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ctx.Err() == nil {
		o.tasks.Go(f)
	}
}

// Close revokes the leases, ends the opener, waits for its goroutines, and calls
// free, once: whoever calls it again only waits for the same.
func (o *Opener) Close(free func()) {
	o.closeOnce.Do(func() {
		o.revokeAll()
		o.mu.Lock()
		o.cancel()
		o.mu.Unlock()
		o.tasks.Wait()
		free()
	})
}
