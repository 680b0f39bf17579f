// Package opener is the base of a store's handle in one process, whichever store it is:
// its life, which ends with Close or with the store, the leases that it keeps alive, and
// the index of its watchers.
//
// It is no store and knows neither keys nor tables. Only the stores import it; of
// bijou it imports package store only.
package opener

import (
	"context"
	"sync"

	"bijou/state/store"
)

// Opener is the base of one handle of a store, which embeds it. Its methods may be called
// from several goroutines.
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

// New returns an open one.
func New() *Opener {
	o := &Opener{gone: make(chan struct{}), leases: map[*lease]bool{}}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// Context returns a context that ends when the opener is closed, for its goroutines.
func (o *Opener) Context() context.Context { return o.ctx }

// Closed returns a channel that is closed when the opener is.
func (o *Opener) Closed() <-chan struct{} { return o.ctx.Done() }

// Gone returns a channel that is closed when the store is gone.
func (o *Opener) Gone() <-chan struct{} { return o.gone }

// MarkGone marks the store as gone for ever, and returns ErrStoreGone.
func (o *Opener) MarkGone() error {
	o.goneOnce.Do(func() { close(o.gone) })
	return store.ErrStoreGone
}

// CheckUsable returns ErrClosed, ErrStoreGone, or the error of the call's context if the
// store cannot be used.
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
		o.revokeAll()
		o.mu.Lock()
		o.cancel()
		o.mu.Unlock()
		o.tasks.Wait()
		free()
	})
}
