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

// Spans returns the spans of a scope, sorted by Text, without spans that another span covers.
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

// WatcherIndex is the set of watchers for each span. It finds the watchers of the keys in a commit. Callers
// must lock it.
type WatcherIndex[W comparable] map[Span]map[W]bool

// Add adds a watcher to the sets of its spans. None of the spans may cover another, as in the result of [Spans],
// since SplitBatch would otherwise give the watcher an event twice.
func (x WatcherIndex[W]) Add(w W, spans []Span) {
	for _, s := range spans {
		if x[s] == nil {
			x[s] = map[W]bool{}
		}
		x[s][w] = true
	}
}

// Remove removes a watcher from the sets of its spans. It returns the spans that have no more watchers. It
// does nothing if the watcher is not in the index.
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

// SplitBatch returns, for each watcher with events in the batch, a batch of only these events. For each event
// it looks up the key and all prefixes of the key, so that it need not check every watcher.
func (x WatcherIndex[W]) SplitBatch(b store.Batch) map[W]store.Batch {
	parts := map[W]store.Batch{}
	addForSpan := func(e store.Event, s Span) {
		for w := range x[s] {
			parts[w] = store.Batch{Revision: b.Revision, Events: append(parts[w].Events, e)}
		}
	}

	for _, e := range b.Events {
		addForSpan(e, Span{Text: e.Key})
		// The prefixes include the empty one and the whole key.
		for n := range len(e.Key) + 1 {
			addForSpan(e, Span{Text: e.Key[:n], Prefix: true})
		}
	}

	return parts
}

// Watch is the part that the watchers of all stores have in common. Each store's watcher embeds a Watch, which
// holds the watcher's spans, and wakes or ends the watcher's Next.
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

// Wait blocks until Wake is called, ctx is done, the watch or its opener has ended, or the store is gone. If
// Wake was called since the last Wait, it returns immediately.
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
