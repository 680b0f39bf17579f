package etcd

import (
	"context"
	"sync"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// maxQueuedBatches wait for a watcher before the mux removes it.
const maxQueuedBatches = 256

// watcher gets its batches from the mux, from a replay, or from neither: then its Next
// registers with the mux again. The mux's batches wait while a replay delivers those before.
type watcher struct {
	*opener.Watch
	d     *db
	epoch int // of its position

	nextMu sync.Mutex // one Next at a time

	mu          sync.Mutex
	position    int64         // everything up to here is in the queue, or was taken
	registered  bool          // with the mux
	live        bool          // the mux delivers what comes after position, or after replayUntil
	replayUntil int64         // a replay delivers what is between position and here; 0: there is none
	queue       []store.Batch // in order
	afterReplay []store.Batch // to be queued then
	err         error         // what Next returns after the queue
}

// Watch does not wait for etcd; Next does, however long etcd is away.
func (d *db) Watch(ctx context.Context, after int64, prefixes ...string) (store.Watcher, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}
	after = max(after, d.marker) // there was no store before
	seen := d.history.lastSeen()
	w := &watcher{Watch: d.NewWatch(prefixes), d: d, epoch: seen.epoch, position: after}
	if after > seen.revision {
		d.Go(func() { d.checkStartRevision(w, after) })
	}
	w.ensureRegistered()
	return w, nil
}

func (w *watcher) Next(ctx context.Context) (store.Batch, error) {
	w.nextMu.Lock()
	defer w.nextMu.Unlock()
	for {
		if err := w.CheckUsable(ctx); err != nil {
			return store.Batch{}, err
		}
		b, ok, err := w.popBatch()
		if ok || err != nil {
			return b, err
		}
		w.ensureRegistered()
		w.Wait(ctx)
	}
}

func (w *watcher) popBatch() (b store.Batch, ok bool, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) > 0 {
		b = w.queue[0]
		w.queue = w.queue[1:]
		return b, true, nil
	}
	return store.Batch{}, false, w.err
}

func (w *watcher) ensureRegistered() {
	w.mu.Lock()
	idle := !w.registered && w.replayUntil == 0 && w.err == nil && len(w.Prefixes) > 0
	w.registered = w.registered || idle
	w.mu.Unlock()
	if idle {
		w.d.watches.addWatcher(w)
	}
}

// goLive is called by the mux, which delivers everything after the revision from now on.
// Another stream's repetition of that has no effect.
func (w *watcher) goLive(from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.live {
		return
	}
	w.live = true
	if w.position < from {
		w.replayUntil = from
		position := w.position
		w.d.Go(func() { w.d.replayHistory(w, position, from) })
	}
}

// push is called by the mux, and reports whether the watcher keeps up. A replay will deliver
// what comes before it is live.
func (w *watcher) push(b store.Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.live || b.Revision <= max(w.position, w.replayUntil) {
		return true
	}
	if len(w.queue)+len(w.afterReplay) >= maxQueuedBatches {
		w.registered, w.live = false, false
		return false
	}
	if w.replayUntil > 0 {
		w.afterReplay = append(w.afterReplay, b)
		return true
	}
	w.enqueue(b)
	return true
}

func (w *watcher) enqueue(b store.Batch) {
	w.queue = append(w.queue, b)
	w.position = b.Revision
	w.Wake()
}

func (w *watcher) pushReplayed(b store.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.enqueue(b)
	}
}

func (w *watcher) finishReplay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.position, w.replayUntil = max(w.position, w.replayUntil), 0
	for _, b := range w.afterReplay {
		w.enqueue(b)
	}
	w.afterReplay = nil
	w.Wake()
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err, w.afterReplay = err, nil
	w.Wake()
}

func (w *watcher) isOutdated() bool { return w.epoch != w.d.history.lastSeen().epoch }

func (w *watcher) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

func (w *watcher) Close() {
	w.Cancel()
	w.d.watches.removeWatcher(w)
}
