package sqlite

import (
	"context"
	"slices"
	"sync"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// maxQueuedBatches is how many batches can wait for a watcher before the tailer detaches it.
const maxQueuedBatches = 256

// watcher is either behind or live. If it is behind, Next reads the log. If it is live, the tailer fills its
// queue.
type watcher struct {
	*handle.Watch
	d *db

	nextMu   sync.Mutex // one Next at a time
	joinedAt int64      // the tailer's position when the live watcher was added; guarded by the tailer's lock

	mu       sync.Mutex
	live     bool          // whether the tailer delivers all changes to the watcher
	position int64         // the last revision that the watcher has read from the log while it is behind
	queue    []store.Batch // batches for Next, in order
}

// Watch returns a watcher that is behind. Its first Next reads the log after the revision.
func (d *db) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := d.checkPresent(ctx); err != nil {
		return nil, err
	}
	return &watcher{Watch: d.NewWatch(scope), d: d, position: after}, nil
}

// Next returns the next batch in the queue. If the queue is empty, it waits for the tailer if the watcher is
// live, and reads the log otherwise.
func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.nextMu.Lock()
	defer w.nextMu.Unlock()

	for {
		if err := w.CheckUsable(ctx); err != nil {
			return store.Batch{}, err
		}

		b, ok, live := w.popBatch()
		switch {
		case ok:
			return b, nil
		case live:
			w.Wait(ctx)
		default:
			if err := w.catchUp(ctx); err != nil {
				return store.Batch{}, err
			}
		}
	}
}

// popBatch takes the first batch from the queue. ok is false if the queue is empty. live reports whether the
// tailer delivers to the watcher.
func (w *watcher) popBatch() (b store.Batch, ok, live bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		b = w.queue[0]
		w.queue = w.queue[1:]
		return b, true, w.live
	}

	return store.Batch{}, false, w.live
}

// catchUp adds the watcher to the tailer. If the tailer refuses the watcher, catchUp reads the next changes
// from the log. If it has then read the log to its end, it asks the tailer again. It returns ErrHistoryLost
// if the log no longer has all changes that the watcher needs.
func (w *watcher) catchUp(ctx context.Context) error {
	w.mu.Lock()
	from := w.position
	w.mu.Unlock()
	if w.d.tailer.addWatcher(w, from, logNotRead) {
		return nil
	}

	s, err := w.d.readLog(ctx, from, w.wantsKey)
	if err != nil {
		return err
	}
	if s.trimmed > from {
		return store.ErrHistoryLost
	}

	w.mu.Lock()
	w.queue = s.batches
	w.position = s.end
	w.mu.Unlock()
	if !s.more {
		// If the tailer refuses the watcher again, the next call of catchUp continues to read the log.
		w.d.tailer.addWatcher(w, s.end, readToItsEnd)
	}
	return nil
}

// wantsKey reports whether the watcher watches the key.
func (w *watcher) wantsKey(key string) bool {
	return slices.ContainsFunc(w.Spans, func(s handle.Span) bool { return s.Has(key) })
}

// Close ends the watcher, and removes it from the tailer.
func (w *watcher) Close() {
	w.Cancel()
	w.d.tailer.removeWatcher(w)
}

// push adds a batch to the queue. It returns false if the queue is full. The tailer calls it.
func (w *watcher) push(b store.Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) >= maxQueuedBatches {
		return false
	}

	w.queue = append(w.queue, b)
	w.Wake()
	return true
}

// setLive makes the watcher live, and queues the events of its keys in the batches that it has missed. The
// tailer calls it. position is the last revision that the tailer must not deliver to the watcher again.
func (w *watcher) setLive(position int64, missed []store.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()

	w.live = true
	w.joinedAt = position
	for _, b := range missed {
		b.Events = slices.DeleteFunc(slices.Clone(b.Events), func(e store.Event) bool {
			return !w.wantsKey(e.Key)
		})
		if len(b.Events) > 0 {
			w.queue = append(w.queue, b)
		}
	}
}
