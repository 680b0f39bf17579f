package handle

import (
	"context"
	"slices"
	"strings"

	"bijou/state/store"
)

// MinimalPrefixes returns those of the prefixes that no other covers, sorted.
func MinimalPrefixes(prefixes []string) []string {
	var out []string
	for _, p := range slices.Sorted(slices.Values(prefixes)) {
		if len(out) == 0 || !strings.HasPrefix(p, out[len(out)-1]) {
			out = append(out, p)
		}
	}

	return out
}

// WatcherIndex finds the watchers that a commit concerns, by their prefixes. It has no
// lock of its own.
type WatcherIndex[W comparable] map[string]map[W]bool

// Add adds a watcher, whose prefixes are minimal.
func (x WatcherIndex[W]) Add(w W, prefixes []string) {
	for _, p := range prefixes {
		if x[p] == nil {
			x[p] = map[W]bool{}
		}
		x[p][w] = true
	}
}

// Remove removes a watcher, and returns the prefixes of which it was the last. It is idempotent.
func (x WatcherIndex[W]) Remove(w W, prefixes []string) (idle []string) {
	for _, p := range prefixes {
		if !x[p][w] {
			continue
		}

		delete(x[p], w)
		if len(x[p]) == 0 {
			delete(x, p)
			idle = append(idle, p)
		}
	}

	return idle
}

// SplitBatch returns for each watcher the events that concern it. It costs a look-up for
// each byte of a key, however many watchers there are.
func (x WatcherIndex[W]) SplitBatch(b store.Batch) map[W]store.Batch {
	parts := map[W]store.Batch{}
	for _, e := range b.Events {
		for n := range len(e.Key) + 1 {
			for w := range x[e.Key[:n]] {
				parts[w] = store.Batch{Revision: b.Revision, Events: append(parts[w].Events, e)}
			}
		}
	}

	return parts
}

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
