package etcd

import (
	"context"
	"slices"
	"sync"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// maxQueuedBatches wait for a watcher before the mux removes it.
const maxQueuedBatches = 256

// watcher gets its batches from the mux, from a replay, or from neither: then its Next
// registers with the mux again. The mux's batches wait while a replay delivers those before.
type watcher struct {
	*handle.Watch
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

// Watch returns a watcher of the changes after a revision. Watch does not wait for etcd. Next does, however long
// etcd is away.
func (d *db) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}

	after = max(after, d.marker) // the store was created at the marker's revision
	seen := d.history.lastSeen()
	w := &watcher{Watch: d.NewWatch(scope), d: d, epoch: seen.epoch, position: after}
	if after > seen.revision {
		d.Go(func() { d.checkStartRevision(w, after) })
	}
	w.ensureRegistered()
	return w, nil
}

// Next waits for the next change, or for an error that ends the watcher.
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

// popBatch takes the first batch from the queue. If that is empty, it returns the watcher's error.
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

// ensureRegistered adds the watcher to the mux, unless it is registered, replays, or has failed.
func (w *watcher) ensureRegistered() {
	w.mu.Lock()
	idle := !w.registered && w.replayUntil == 0 && w.err == nil && len(w.Spans) > 0
	w.registered = w.registered || idle
	w.mu.Unlock()
	if idle {
		w.d.watches.addWatcher(w)
	}
}

// goLive marks that the mux delivers everything after the revision from now on. The mux calls it. If another
// stream repeats a change, that has no effect.
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

// push takes a batch from the mux, and reports whether the watcher keeps up. It leaves batches from before
// the watcher was live to the replay.
func (w *watcher) push(b store.Batch) bool {
	w.mu.Lock()
	defer w.mu.Unlock()

	if !w.live || b.Revision <= max(w.position, w.replayUntil) {
		return true
	}
	if len(w.queue)+len(w.afterReplay) >= maxQueuedBatches {
		w.registered = false
		w.live = false
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

// finishReplay ends the replay, and queues the batches that have come since.
func (w *watcher) finishReplay() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.position = max(w.position, w.replayUntil)
	w.replayUntil = 0
	for _, b := range w.afterReplay {
		w.enqueue(b)
	}
	w.afterReplay = nil
	w.Wake()
}

func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.afterReplay = nil
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

// replay delivers to one watcher, over a stream of its own, what was committed before the mux does.
type replay struct {
	w        *watcher
	stream   *watchStream
	position int64 // everything up to here was delivered
	until    int64
	stop     context.CancelFunc
	finished bool
}

// replayHistory feeds the watcher with the changes after one revision, until another.
func (d *db) replayHistory(w *watcher, after, until int64) {
	if d.unchangedBetween(w, after, until) {
		w.finishReplay()
		return
	}

	r := &replay{w: w, position: after, until: until}
	for n := 0; ; n++ {
		ctx, cancel := context.WithCancel(w.Context())
		r.stream = newWatchStream(d, r)
		r.stop = cancel
		for i, span := range w.Spans {
			r.stream.addWatch(int64(i+1), d.keys.spanRange(span), r.position+1)
		}
		_ = r.stream.run(ctx) // a broken stream is tried again; an error that lasts, the mux meets, too
		cancel()
		if r.finished || w.hasFailed() || waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

// unchangedBetween reports whether certainly nothing below the watcher's prefixes has changed between the
// revisions after and until. Then nothing must be replayed, which is the usual case. This query is fast,
// while etcd begins a watch of the past only at its next tenth of a second. The mux delivers changes after
// until.
func (d *db) unchangedBetween(w *watcher, after, until int64) bool {
	var conds []clientv3.Cmp
	var reads []clientv3.Op
	for _, span := range w.Spans {
		leased, err := d.leasedKeysOf(w.Context(), d.currentListing(span, after))
		if err != nil {
			return false
		}

		conds = append(conds, d.tombstonesComplete(after, leased)...)
		reads = append(reads, findChange(d.keys.spanRange(span), after, until),
			findChange(d.keys.tombstoneSpan(span), after, until))
	}

	if max(len(conds), len(reads)) > maxRootOps {
		return false
	}

	ctx, cancel := context.WithTimeout(w.Context(), firstAttemptTimeout)
	defer cancel()
	resp, err := d.client.Txn(ctx).If(conds...).Then(reads...).Commit()
	return err == nil && resp.Succeeded && !slices.ContainsFunc(resp.Responses, hasKeys)
}

// findChange reads a key that was put after the one revision, as of the other.
func findChange(s keyRange, after, until int64) clientv3.Op {
	return clientv3.OpGet(s.begin, clientv3.WithRange(s.end), clientv3.WithRev(until), clientv3.WithMinModRev(after+1),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
}

// hasKeys reports whether the answer has keys. It does not look at the count, which is that of the whole
// range.
func hasKeys(r *pb.ResponseOp) bool { return len(r.GetResponseRange().Kvs) > 0 }

// watchCreated requests a progress report from etcd, since there may be no change to deliver.
func (r *replay) watchCreated(id, revision int64) { r.stream.requestProgress() }

func (r *replay) commitComplete(g commitEvents) {
	if r.finished || g.revision <= r.position || g.revision > r.until {
		return
	}
	r.w.pushReplayed(r.w.d.toBatch(g))
	r.position = g.revision
}

// progressReached notes that all changes up to the revision have come. At the replay's end it finishes the
// replay.
func (r *replay) progressReached(revision int64) {
	if r.finished {
		return
	}
	if r.w.isOutdated() {
		r.fail()
		return
	}

	r.position = max(r.position, min(revision, r.until))
	if r.position == r.until {
		r.w.finishReplay()
		r.finish()
	}
}

func (r *replay) watchCompacted(id, kept int64) {
	if !r.finished {
		r.fail()
	}
}

func (r *replay) fail() {
	r.w.d.watches.removeWatcher(r.w)
	r.w.fail(store.ErrHistoryLost)
	r.finish()
}

func (r *replay) finish() {
	r.finished = true
	r.stop()
}
