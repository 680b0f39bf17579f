package etcd

import (
	"context"
	"sync"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// maxQueue is how many batches wait for a watcher before the hub drops it.
const maxQueue = 256

// watcher is fed by the hub, by a catchup, or by nobody: then its Next joins the
// hub again. The hub's batches wait while a catchup tells what was before them.
type watcher struct {
	*opener.Watch
	d     *db
	epoch int // that its position is of

	next sync.Mutex // one Next at a time

	mu      sync.Mutex
	pos     int64         // everything up to here is in the queue, or was taken
	joined  bool          // the hub knows it
	settled bool          // the hub feeds it what comes after pos, or after until
	until   int64         // a catchup tells what comes between pos and here; 0: there is none
	queue   []store.Batch // in order
	later   []store.Batch // after the catchup
	err     error         // after the queue
}

// Watch takes no answer from etcd; Next waits for one, however long etcd is away.
func (d *db) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	if err := d.Usable(ctx); err != nil {
		return nil, err
	}
	after = max(after, d.marker) // there was no store before
	seen := d.history.lastSeen()
	w := &watcher{Watch: d.NewWatch(prefixes), d: d, epoch: seen.epoch, pos: after}
	if after > seen.revision {
		d.Go(func() { d.checkStart(w, after) })
	}
	w.rejoin()
	return w, nil
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.next.Lock()
	defer w.next.Unlock()
	for {
		if err := w.Usable(ctx); err != nil {
			return store.Batch{}, err
		}
		b, ok, err := w.take()
		if ok || err != nil {
			return b, err
		}
		w.rejoin()
		w.Wait(ctx)
	}
}

func (w *watcher) take() (b store.Batch, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		b = w.queue[0]
		w.queue = w.queue[1:]
		return b, true, nil
	}
	return store.Batch{}, false, w.err
}

// rejoin has the hub feed the watcher, if nobody does.
func (w *watcher) rejoin() {
	w.mu.Lock()
	idle := !w.joined && w.until == 0 && w.err == nil && len(w.Prefixes) > 0
	w.joined = w.joined || idle
	w.mu.Unlock()
	if idle {
		w.d.hub.join(w)
	}
}

// settle is called by the hub, which tells everything after the revision from
// now on. It may do so again after its tape was changed, to no effect.
func (w *watcher) settle(from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.settled {
		return
	}
	w.settled = true
	if w.pos < from {
		w.until = from
		pos := w.pos
		w.d.Go(func() { w.d.catchUp(w, pos, from) })
	}
}

// push is called by the hub, and says if it may go on. What comes before the
// watcher has settled, a catchup will tell.
func (w *watcher) push(b store.Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.settled || b.Revision <= max(w.pos, w.until) {
		return true
	}
	if len(w.queue)+len(w.later) >= maxQueue {
		w.joined, w.settled = false, false
		return false
	}
	if w.until > 0 {
		w.later = append(w.later, b)
		return true
	}
	w.add(b)
	return true
}

// add queues a batch. The caller holds the lock.
func (w *watcher) add(b store.Batch) {
	w.queue = append(w.queue, b)
	w.pos = b.Revision
	w.Rouse()
}

// tell is called by the catchup.
func (w *watcher) tell(b store.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.add(b)
	}
}

// caughtUp is called at the catchup's end.
func (w *watcher) caughtUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pos, w.until = max(w.pos, w.until), 0
	for _, b := range w.later {
		w.add(b)
	}
	w.later = nil
	w.Rouse()
}

// fail ends the watcher once its queue is empty.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.later = err, nil
	w.Rouse()
}

// outdated says if the epoch of its position has ended.
func (w *watcher) outdated() bool { return w.epoch != w.d.history.lastSeen().epoch }

func (w *watcher) failed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

func (w *watcher) Close() {
	w.End()
	w.d.hub.leave(w)
}
