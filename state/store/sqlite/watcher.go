package sqlite

import (
	"context"
	"slices"
	"strings"
	"sync"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// maxQueuedBatches wait for a watcher before the tailer detaches it.
const maxQueuedBatches = 256

// watcher is either behind, and then its Next reads the log itself, or live,
// and then the tailer fills its queue.
type watcher struct {
	*opener.Watch
	d *db

	nextMu   sync.Mutex // one Next at a time
	joinedAt int64      // while live: the tailer's position when it was added; its lock guards this

	mu       sync.Mutex
	live     bool
	position int64 // while behind: everything up to here was queued or passed over
	queue    []store.Batch
}

func (d *db) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	if err := d.checkPresent(ctx); err != nil {
		return nil, err
	}
	return &watcher{Watch: d.NewWatch(prefixes), d: d, position: after}, nil
}

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

func (w *watcher) popBatch() (b store.Batch, ok, live bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		b, w.queue = w.queue[0], w.queue[1:]
		return b, true, w.live
	}
	return store.Batch{}, false, w.live
}

func (w *watcher) catchUp(ctx context.Context) error {
	w.mu.Lock()
	from := w.position
	w.mu.Unlock()
	s, err := w.d.readLog(ctx, from, w.wantsKey)
	if err != nil {
		return err
	}
	if s.trimmed > from {
		return store.ErrHistoryLost
	}
	w.mu.Lock()
	w.queue, w.position = s.batches, s.end
	w.mu.Unlock()
	if !s.more {
		w.d.tailer.addWatcher(w, s.end)
	}
	return nil
}

func (w *watcher) wantsKey(key string) bool {
	return slices.ContainsFunc(w.Prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (w *watcher) Close() {
	w.Cancel()
	w.d.tailer.removeWatcher(w)
}

// push reports false if too many batches wait. The tailer calls it.
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

func (w *watcher) setLive(position int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.joinedAt = true, position
}

func (w *watcher) setBehind(position int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.position = false, position
	w.Wake()
}
