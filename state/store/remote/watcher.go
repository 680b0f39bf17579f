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

// maxQueuedBatches is how many batches can wait for Next before the watcher stops receiving.
const maxQueuedBatches = 64

// watcher makes one gRPC call of Watch after the other. Each call continues where the previous call broke.
type watcher struct {
	*handle.Watch
	d      *db
	scope  store.Scope
	nextMu sync.Mutex // one Next at a time

	position int64 // the last revision that was queued; only follow uses it

	mu    sync.Mutex
	queue []store.Batch
	err   error         // the error that Next returns once the queue is empty
	room  chan struct{} // signalled when a batch was taken; buffered: one signal is enough
}

// Watch returns a watcher of the changes after a revision. It does not wait for the gateway. If the gateway
// does not answer, Next waits until it does.
func (d *db) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}

	w := &watcher{Watch: d.NewWatch(scope), d: d, scope: scope, position: after, room: make(chan struct{}, 1)}
	d.Go(w.follow)
	return w, nil
}

// Next returns the next batch that follow has queued. If the queue is empty, it waits, or returns the error
// with which follow has ended.
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

// popBatch takes the first batch from the queue, and makes room for another one. If the queue is empty, it
// returns ok false, and the watcher's error if the watch has ended.
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

// follow receives changes until the watcher ends. It calls the gateway again whenever a call breaks. Any other
// error of a call ends follow, and Next returns it. If the gateway serves an older copy of the store in two
// calls in a row, follow marks the store as gone. One such call does not prove that the store was replaced.
func (w *watcher) follow() {
	previousWasOlder := false
	for n := 0; ; n++ {
		from := w.position
		err := w.followOnce()
		if w.CheckUsable(context.Background()) != nil {
			// Next notices this itself.
			return
		}

		isOlder := errors.Is(err, errOlder)
		if isOlder && previousWasOlder {
			w.fail(w.d.markReplaced(err))
			return
		}
		previousWasOlder = isOlder
		if !isOlder && !isTransient(err) {
			w.fail(w.d.storeError(context.Background(), err))
			return
		}

		// A call that has delivered changes worked, so the next one starts without a long delay. n is 0 after
		// such a call, and grows with each call that delivers nothing.
		if w.position > from {
			n = 0
		}
		if waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

// fail makes Next return the error once the queue is empty.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.Wake()
}

// followOnce calls Watch once, and queues the changes that it receives until the call breaks. It always
// returns an error, which wraps errOlder if the gateway serves an older copy of the store.
func (w *watcher) followOnce() error {
	ctx, cancel := context.WithCancel(w.Context())
	defer cancel()

	// The caller of Watch knew the position, even if no call of this handle has reported it.
	before := max(w.d.seen.Load(), w.position)
	stream, err := w.d.client.Watch(ctx, protocol.FromScope(w.position, w.scope))
	if err != nil {
		return err
	}

	// The gateway first sends a response with only the store's newest revision.
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
			return fmt.Errorf("the gateway sent revision %d after revision %d", b.Revision, w.position)
		}
		if err := w.enqueue(b); err != nil {
			return err
		}
		w.position = b.Revision
		w.d.raise(b.Revision)
	}
}

// enqueue queues a batch for Next. If the queue is full, it waits. The gateway then also waits, and its store
// keeps the changes. It returns an error if the watcher is closed during the wait.
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
