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

// maxQueuedBatches is how many batches can wait for a watcher before the mux removes it.
const maxQueuedBatches = 256

// watcher gets its batches from the mux. If it has missed batches, it gets them from a replay first, while
// the mux's batches wait. If the mux has removed the watcher because it did not keep up, Next registers it
// again.
type watcher struct {
	*handle.Watch
	d     *db
	epoch int // the epoch to which position belongs; see historyTracker

	nextMu sync.Mutex // one Next at a time

	mu          sync.Mutex
	position    int64         // the last revision whose changes were queued
	registered  bool          // whether the watcher is registered with the mux
	live        bool          // whether the mux delivers all changes after position, or after replayUntil
	replayUntil int64         // the revision up to which a replay delivers changes; 0 without a replay
	queue       []store.Batch // batches for Next, in order
	afterReplay []store.Batch // batches that are queued after the replay
	err         error         // the error that Next returns once the queue is empty
}

// Watch returns a watcher of the changes after a revision. It does not wait for etcd. If etcd cannot be
// reached, Next waits until etcd answers again.
func (d *db) Watch(ctx context.Context, after int64, scope store.Scope) (store.Watcher, error) {
	if err := d.CheckUsable(ctx); err != nil {
		return nil, err
	}

	// The store was created at the marker's revision, and has no earlier changes.
	after = max(after, d.marker)
	seen := d.history.lastSeen()
	w := &watcher{Watch: d.NewWatch(scope), d: d, epoch: seen.epoch, position: after}
	// A revision that this process has not seen may belong to an earlier history.
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

		// The mux may have removed the watcher, because its queue was full.
		w.ensureRegistered()
		w.Wait(ctx)
	}
}

// popBatch takes the first batch from the queue. If the queue is empty, ok is false, and err is the watcher's
// error, or nil if the watcher has not failed.
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

// ensureRegistered adds the watcher to the mux. It does nothing if the watcher is registered, has a replay, has
// failed, or watches no keys.
func (w *watcher) ensureRegistered() {
	w.mu.Lock()
	mustRegister := !w.registered && w.replayUntil == 0 && w.err == nil && len(w.Spans) > 0
	if mustRegister {
		w.registered = true
	}
	w.mu.Unlock()

	// addWatcher locks the mux, which locks watchers. So it is called without the watcher's lock.
	if mustRegister {
		w.d.watches.addWatcher(w)
	}
}

// goLive records that from now on the mux delivers all changes after the revision from. If the watcher has not
// yet got all changes up to from, goLive starts a replay of them. The mux calls goLive.
func (w *watcher) goLive(from int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	// After a new stream has replaced the mux's stream, the mux calls goLive again for all watchers.
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

// push queues a batch from the mux. It ignores a batch that was queued before, or that a replay delivers, and all
// batches before goLive. If the queue is full, push drops the batch and returns false, and the mux must remove the
// watcher. Once the queue is empty and no replay is running, Next registers the watcher again, and a new replay
// delivers what it has missed.
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

// enqueue adds a batch to the queue and wakes Next. The caller holds w.mu.
func (w *watcher) enqueue(b store.Batch) {
	w.queue = append(w.queue, b)
	w.position = b.Revision
	w.Wake()
}

// pushReplayed queues a batch from the replay, unless the watcher has failed.
func (w *watcher) pushReplayed(b store.Batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil {
		w.enqueue(b)
	}
}

// finishReplay ends the replay, and queues the batches that the mux has pushed during the replay.
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

// fail makes Next return the error, after the batches that are already in the queue. It drops the batches
// that wait for the end of a replay.
func (w *watcher) fail(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.err = err
	w.afterReplay = nil
	w.Wake()
}

// isOutdated reports whether etcd's history was replaced since the watcher was made.
func (w *watcher) isOutdated() bool { return w.epoch != w.d.history.lastSeen().epoch }

// hasFailed reports whether fail was called.
func (w *watcher) hasFailed() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err != nil
}

// Close ends the watcher, and removes it from the mux.
func (w *watcher) Close() {
	w.Cancel()
	w.d.watches.removeWatcher(w)
}

// replay delivers past changes to one watcher, over a separate stream.
type replay struct {
	w        *watcher
	stream   *watchStream
	position int64 // the last revision whose changes were delivered
	until    int64 // the revision at which the replay ends
	stop     context.CancelFunc
	finished bool
}

// replayHistory delivers to the watcher the changes in the revisions from after+1 to until. It returns when all
// were delivered, or when the watcher has failed or was closed.
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
			// With the id 0, etcd would choose the id itself.
			r.stream.addWatch(int64(i+1), d.keys.spanRange(span), r.position+1)
		}
		// Ignore the error: the loop reopens a broken stream, and the mux reports lasting errors.
		_ = r.stream.run(ctx)
		cancel()

		if r.finished || w.hasFailed() || waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

// unchangedBetween reports whether all keys of the watcher are unchanged in the revisions from after+1 to
// until. If it cannot find out, it returns false. Usually nothing has changed, so that no replay is
// necessary. This query is faster than a replay, since etcd starts watches of past revisions only every 100
// ms.
func (d *db) unchangedBetween(w *watcher, after, until int64) bool {
	var conds []clientv3.Cmp
	var reads []clientv3.Op
	for _, span := range w.Spans {
		leased, err := d.listLeased(w.Context(), d.currentListing(span, after))
		if err != nil {
			return false
		}

		// If the conditions hold, each changed key was put or has a tombstone. So if both reads find nothing,
		// nothing has changed, except by quiet deletions, which watchers need not see.
		conds = append(conds, d.tombstonesComplete(after, leased)...)
		reads = append(reads, findChange(d.keys.spanRange(span), after, until),
			findChange(d.keys.tombstoneSpan(span), after, until))
	}

	// The query must fit into one transaction.
	if max(len(conds), len(reads)) > maxRootOps {
		return false
	}

	ctx, cancel := context.WithTimeout(w.Context(), firstAttemptTimeout)
	defer cancel()
	resp, err := d.client.Txn(ctx).If(conds...).Then(reads...).Commit()
	return err == nil && resp.Succeeded && !slices.ContainsFunc(resp.Responses, hasKeys)
}

// findChange returns a read of at most one key that was last put in the revisions from after+1 to until. It
// reads at revision until.
func findChange(s keyRange, after, until int64) clientv3.Op {
	return clientv3.OpGet(s.begin, clientv3.WithRange(s.end), clientv3.WithRev(until), clientv3.WithMinModRev(after+1),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
}

// hasKeys reports whether the answer to findChange has a key. It does not use the answer's count, which
// includes the keys that were not changed.
func hasKeys(r *pb.ResponseOp) bool { return len(r.GetResponseRange().Kvs) > 0 }

// watchCreated requests a progress report from etcd, since there may be no changes to deliver.
func (r *replay) watchCreated(id, revision int64) { r.stream.requestProgress() }

// commitComplete delivers a commit to the watcher, unless the replay has finished or has delivered the commit
// before, or the commit is after the replay's end.
func (r *replay) commitComplete(c commitEvents) {
	if r.finished || c.revision <= r.position || c.revision > r.until {
		return
	}
	r.w.pushReplayed(r.w.d.toBatch(c))
	r.position = c.revision
}

// progressReached records that all changes up to the revision were delivered. Once r.until is reached, it
// finishes the replay. If etcd's history was replaced, it fails the watcher instead.
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

// watchCompacted fails the watcher, since etcd no longer has the changes to replay.
func (r *replay) watchCompacted(id, kept int64) {
	if !r.finished {
		r.fail()
	}
}

// fail ends the replay. The watcher's Next then returns ErrHistoryLost.
func (r *replay) fail() {
	r.w.d.watches.removeWatcher(r.w)
	r.w.fail(store.ErrHistoryLost)
	r.finish()
}

// finish ends the replay's stream. The replay then ignores the stream's remaining changes.
func (r *replay) finish() {
	r.finished = true
	r.stop()
}
