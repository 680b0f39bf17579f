package sqlite

import (
	"context"
	"slices"
	"strings"
	"sync"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// maxQueue is how many batches wait for a watcher before the hub drops it.
const maxQueue = 256

// watcher is either behind, and then its Next reads the log itself, or live,
// and then the hub fills its queue.
type watcher struct {
	*opener.Watch
	d *db

	next   sync.Mutex // one Next at a time
	joined int64      // while live: where it joined the hub. The hub's lock guards it

	mu    sync.Mutex
	live  bool
	pos   int64 // while behind: everything up to here was queued or passed over
	queue []store.Batch
}

func (d *db) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	if err := d.present(ctx); err != nil {
		return nil, err
	}
	return &watcher{Watch: d.NewWatch(prefixes), d: d, pos: after}, nil
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.next.Lock()
	defer w.next.Unlock()
	for {
		if err := w.Usable(ctx); err != nil {
			return store.Batch{}, err
		}
		b, state := w.take()
		switch state {
		case given:
			return b, nil
		case behind:
			if err := w.catchUp(ctx); err != nil {
				return store.Batch{}, err
			}
		case empty:
			w.Wait(ctx)
		}
	}
}

// taken says what take has found.
type taken int

const (
	given taken = iota
	behind
	empty
)

// take is the first batch of the queue, or what to do about there being none.
func (w *watcher) take() (store.Batch, taken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		b := w.queue[0]
		w.queue = w.queue[1:]
		return b, given
	}
	if !w.live {
		return store.Batch{}, behind
	}
	return store.Batch{}, empty
}

// catchUp reads on in the log, and joins the hub at its end.
func (w *watcher) catchUp(ctx context.Context) error {
	w.mu.Lock()
	from := w.pos
	w.mu.Unlock()
	var s stretch
	err := w.d.readers.with(ctx, func(c *conn) (err error) {
		s, err = readLog(c, from, readAtOnce, w.wants)
		return err
	})
	if err != nil {
		return err
	}
	if s.trimmed > from {
		return store.ErrCompacted
	}
	w.mu.Lock()
	w.queue, w.pos = s.batches, s.upto
	w.mu.Unlock()
	if !s.more {
		w.d.hub.join(w, s.upto)
	}
	return nil
}

func (w *watcher) wants(key string) bool {
	return slices.ContainsFunc(w.Prefixes, func(prefix string) bool { return strings.HasPrefix(key, prefix) })
}

func (w *watcher) Close() {
	w.End()
	w.d.hub.leave(w)
}

// push queues a batch unless too many wait. The hub calls it.
func (w *watcher) push(b store.Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) >= maxQueue {
		return false
	}
	w.queue = append(w.queue, b)
	w.Rouse()
	return true
}

// setLive is called by the hub when the watcher joins it.
func (w *watcher) setLive(pos int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.joined = true, pos
}

// setBehind is called by the hub when it drops the watcher.
func (w *watcher) setBehind(pos int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.pos = false, pos
	w.Rouse()
}
