package opener

import (
	"context"

	"bijou/state/store"
)

// Watch is the base of a watcher, which embeds it: its prefixes, its end, and how its Next
// is woken.
type Watch struct {
	Prefixes []string // none covers another

	opener *Opener
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // buffered: one wake-up is enough
}

// NewWatch returns a watch that ends with the opener at the latest.
func (o *Opener) NewWatch(prefixes []string) *Watch {
	w := &Watch{Prefixes: MinimalPrefixes(prefixes), opener: o, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(o.ctx)
	return w
}

// Context returns a context that ends with the watch, for its goroutines.
func (w *Watch) Context() context.Context { return w.ctx }

// CheckUsable returns ErrClosed if the watch was ended, by itself or with its opener;
// ErrStoreGone; or the error of the call's context.
func (w *Watch) CheckUsable(ctx context.Context) error {
	if w.ctx.Err() != nil {
		return store.ErrClosed
	}
	return w.opener.CheckUsable(ctx)
}

// Wait blocks until the watch is woken, or is not usable any more.
func (w *Watch) Wait(ctx context.Context) {
	select {
	case <-w.wake:
	case <-ctx.Done():
	case <-w.ctx.Done():
	case <-w.opener.gone:
	}
}

// Wake has Wait return: the next call, if nobody waits now.
func (w *Watch) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Cancel ends the watch. It is idempotent.
func (w *Watch) Cancel() { w.cancel() }
