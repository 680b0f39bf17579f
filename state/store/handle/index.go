package handle

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"bijou/state/store"
)

// Span is one key, or all keys with a prefix.
type Span struct {
	Text   string
	Prefix bool
}

// Has reports whether the key is in the span.
func (s Span) Has(key string) bool {
	return key == s.Text || s.Prefix && strings.HasPrefix(key, s.Text)
}

// Spans returns the spans of a scope in order, without spans that another span covers.
func Spans(scope store.Scope) (spans []Span) {
	for _, p := range slices.Sorted(slices.Values(scope.Prefixes)) {
		if len(spans) == 0 || !spans[len(spans)-1].Has(p) {
			spans = append(spans, Span{Text: p, Prefix: true})
		}
	}

	for _, key := range scope.Keys {
		if !slices.ContainsFunc(spans, func(s Span) bool { return s.Has(key) }) {
			spans = append(spans, Span{Text: key})
		}
	}

	slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.Text, b.Text) })
	return spans
}

// WatcherIndex finds the watchers of the keys in a commit by their spans. Its callers must lock it.
type WatcherIndex[W comparable] map[Span]map[W]bool

// Add adds a watcher. None of its spans may cover another.
func (x WatcherIndex[W]) Add(w W, spans []Span) {
	for _, s := range spans {
		if x[s] == nil {
			x[s] = map[W]bool{}
		}
		x[s][w] = true
	}
}

// Remove removes a watcher, and returns the spans that no longer have a watcher. It is idempotent.
func (x WatcherIndex[W]) Remove(w W, spans []Span) (idle []Span) {
	for _, s := range spans {
		if !x[s][w] {
			continue
		}

		delete(x[s], w)
		if len(x[s]) == 0 {
			delete(x, s)
			idle = append(idle, s)
		}
	}

	return idle
}

// SplitBatch returns the events for each watcher. It needs one lookup for each byte of a key, independent of
// the number of watchers.
func (x WatcherIndex[W]) SplitBatch(b store.Batch) map[W]store.Batch {
	parts := map[W]store.Batch{}
	hand := func(e store.Event, s Span) {
		for w := range x[s] {
			parts[w] = store.Batch{Revision: b.Revision, Events: append(parts[w].Events, e)}
		}
	}

	for _, e := range b.Events {
		hand(e, Span{Text: e.Key})
		for n := range len(e.Key) + 1 {
			hand(e, Span{Text: e.Key[:n], Prefix: true})
		}
	}

	return parts
}

// Watch is the base of a watcher. The watcher embeds it. It holds the watcher's spans, and wakes or ends the
// watcher's Next.
type Watch struct {
	Spans []Span // none covers another

	opener *Opener
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{} // buffered: one wake-up is enough
}

// NewWatch returns a watch. The watch ends on Cancel or when the opener is closed.
func (o *Opener) NewWatch(scope store.Scope) *Watch {
	w := &Watch{Spans: Spans(scope), opener: o, wake: make(chan struct{}, 1)}
	w.ctx, w.cancel = context.WithCancel(o.ctx)
	return w
}

// Context returns the context of the watch's goroutines. It is done when the watch ends.
func (w *Watch) Context() context.Context { return w.ctx }

// CheckUsable returns ErrClosed if the watch or its opener has ended, ErrStoreGone if the store is gone, or
// ctx's error.
func (w *Watch) CheckUsable(ctx context.Context) error {
	if w.ctx.Err() != nil {
		return store.ErrClosed
	}
	return w.opener.CheckUsable(ctx)
}

// Wait blocks until the watch is woken or unusable.
func (w *Watch) Wait(ctx context.Context) {
	select {
	case <-w.wake:
	case <-ctx.Done():
	case <-w.ctx.Done():
	case <-w.opener.gone:
	}
}

// Wake makes Wait return. If no goroutine is waiting, the next Wait returns immediately.
func (w *Watch) Wake() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Cancel ends the watch. It is idempotent.
func (w *Watch) Cancel() { w.cancel() }
