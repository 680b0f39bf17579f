package opener

import (
	"context"

	"bijou/state/store"
)

// Watch is what every watcher has: what it watches, its end, and how its Next is
// woken.
type Watch struct {
	Prefixes []string // none covers another

	opener *Opener
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // one is enough: it says "look"
}

// NewWatch makes one that ends with the opener at the latest.
func (o *Opener) NewWatch(prefixes []string) *Watch {
	w := &Watch{Prefixes: MinimalPrefixes(prefixes), opener: o, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(o.ctx)
	return w
}

// Context ends with the watcher, for what runs on its account.
func (w *Watch) Context() context.Context { return w.ctx }

// CheckUsable says ErrClosed of a watcher that was ended, by itself or with its
// opener; ErrStoreGone; or the error of the call's context.
func (w *Watch) CheckUsable(ctx context.Context) error {
	if w.ctx.Err() != nil {
		return store.ErrClosed
	}
	return w.opener.CheckUsable(ctx)
}

// Wait returns when the watcher was roused, or is not Usable any more.
func (w *Watch) Wait(ctx context.Context) {
	select {
	case <-w.wake:
	case <-ctx.Done():
	case <-w.ctx.Done():
	case <-w.opener.gone:
	}
}

// Wake has Wait return, the next if nobody waits now.
func (w *Watch) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Cancel ends the watcher. It is idempotent.
func (w *Watch) Cancel() { w.cancel() }
