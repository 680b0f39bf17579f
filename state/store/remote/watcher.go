package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"bijou/state/store"
	"bijou/state/store/handle"
	"bijou/state/store/remote/protocol"
)

// maxQueuedBatches wait for a watcher before the gateway has to.
const maxQueuedBatches = 64

// watcher is one call of Watch after the other, from where the one before has come to.
type watcher struct {
	*handle.Watch
	d      *db
	scope  store.Scope
	nextMu sync.Mutex // one Next at a time

	position int64 // everything up to here was queued; of the goroutine that follows only

	mu    sync.Mutex
	queue []store.Batch
	err   error         // what Next returns after the queue
	room  chan struct{} // buffered: one signal is enough
}

// Watch returns a watcher of the changes after a revision. Watch does not wait for the gateway. Next does,
// however long the gateway is away.
func (d *db) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}

	w := &watcher{Watch: d.NewWatch(scope), d: d, scope: scope, position: after, room: make(chan struct{}, 1)}
	d.Go(w.follow)
	return w, nil
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.nextMu.Lock()
	defer w.nextMu.Unlock()

	for {
		if err := w.CheckUsable(ctx); err != nil {
			return store.Batch{}, err
		}
		if b, ok, err := w.popBatch(); ok || err != nil {
			return b, err
		}
		w.Wait(ctx)
	}
}

func (w *watcher) popBatch() (b store.Batch, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return store.Batch{}, false, w.err
	}

	b = w.queue[0]
	w.queue = w.queue[1:]
	select {
	case w.room <- struct{}{}:
	default:
	}
	return b, true, nil
}

func (w *watcher) Close() { w.Cancel() }

// follow calls the gateway again after each call that broke.
func (w *watcher) follow() {
	older := false
	for n := 0; ; n++ {
		from := w.position
		err := w.followOnce()
		if w.CheckUsable(context.Background()) != nil {
			return
		}

		if errors.Is(err, errOlder) && older {
			w.fail(w.d.goneAs(err))
			return
		}
		older = errors.Is(err, errOlder)
		if !older && !isTransient(err) {
			w.fail(w.d.storeError(context.Background(), err))
			return
		}
		if w.position > from {
			n = 0
		}
		if waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.Wake()
}

// followOnce receives changes until the stream breaks.
func (w *watcher) followOnce() error {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()

	before := w.d.seen.Load()
	stream, err := w.d.client.Watch(ctx, protocol.FromScope(w.position, w.scope))
	if err != nil {
		return err
	}

	newest, err := stream.Recv()
	if err != nil {
		return err
	}
	if err := w.d.observe(before, newest.GetRevision()); err != nil {
		return err
	}

	for {
		response, err := stream.Recv()
		if err != nil {
			return err
		}

		b := response.Batch()
		if b.Revision <= w.position {
			return fmt.Errorf("the gateway sent revision %d after %d", b.Revision, w.position)
		}
		if err := w.enqueue(b); err != nil {
			return err
		}
		w.position = b.Revision
		w.d.raise(b.Revision)
	}
}

// enqueue queues a batch for Next. If the queue is full, it waits: the gateway then waits, too, and its store
// keeps the changes.
func (w *watcher) enqueue(b store.Batch) error {
	for {
		w.mu.Lock()
		fits := len(w.queue) < maxQueuedBatches
		if fits {
			w.queue = append(w.queue, b)
			w.Wake()
		}
		w.mu.Unlock()
		if fits {
			return nil
		}

		select {
		case <-w.room:
		case <-w.Context().Done():
			return w.Context().Err()
		}
	}
}
