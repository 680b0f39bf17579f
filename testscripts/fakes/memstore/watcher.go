package memstore

import (
	"context"
	"sync"

	"bijou/state/store"
)

// watcher reads the log after its position.
type watcher struct {
	o     *handle
	scope store.Scope

	mu       sync.Mutex // allows one Next at a time
	position int64      // the last revision that it has read

	once   sync.Once
	closed chan struct{}
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for {
		if err := w.checkUsable(ctx); err != nil {
			return store.Batch{}, err
		}
		found, changed, err := w.nextBatch()
		if err != nil || len(found.Events) > 0 {
			return found, err
		}
		select {
		case <-changed:
		case <-w.closed:
		case <-w.o.closed:
		case <-ctx.Done():
		}
	}
}

// nextBatch returns the next batch in the scope. If there is none, the batch is empty,
// and changed is closed by the next commit.
func (w *watcher) nextBatch() (found store.Batch, changed <-chan struct{}, err error) {
	d := w.o.d
	d.mu.Lock()
	defer d.mu.Unlock()
	if w.position < d.trimmed {
		return store.Batch{}, nil, store.ErrHistoryLost
	}
	for _, b := range d.logSince(w.position) {
		w.position = b.Revision
		if events := filterEvents(b.Events, w.scope); len(events) > 0 {
			return store.Batch{Revision: b.Revision, Events: events}, nil, nil
		}
	}
	return store.Batch{}, d.changed, nil
}

func (w *watcher) checkUsable(ctx context.Context) error {
	select {
	case <-w.closed:
		return store.ErrClosed
	default:
		return w.o.checkUsable(ctx)
	}
}

func (w *watcher) Close() {
	w.once.Do(func() { close(w.closed) })
}
