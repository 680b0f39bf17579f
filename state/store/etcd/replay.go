package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// replay delivers to one watcher, over a stream of its own, what was committed before the
// mux does.
type replay struct {
	w        *watcher
	stream   *watchStream
	position int64 // everything up to here was delivered
	until    int64
	stop     context.CancelFunc
	finished bool
}

func (d *db) replayHistory(w *watcher, after, until int64) {
	if d.unchangedBetween(w, after, until) {
		w.finishReplay()
		return
	}
	r := &replay{w: w, position: after, until: until}
	for n := 0; ; n++ {
		ctx, cancel := context.WithCancel(w.Context())
		r.stream, r.stop = newWatchStream(d, r), cancel
		for i, prefix := range w.Prefixes {
			r.stream.addWatch(int64(i+1), d.keys.prefixRange(prefix), r.position+1)
		}
		_ = r.stream.run(ctx) // a broken stream is tried again; an error that lasts, the mux meets, too
		cancel()
		if r.finished || w.hasFailed() || waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

// unchangedBetween reports whether certainly nothing is to be replayed. It is mostly so,
// where others have committed between a snapshot and its watch; and asking is fast, while
// etcd begins a watch of the past only at its next tenth of a second. All is read as of
// until: what comes later, the mux delivers.
func (d *db) unchangedBetween(w *watcher, after, until int64) bool {
	var conds []clientv3.Cmp
	var reads []clientv3.Op
	for _, prefix := range w.Prefixes {
		leased, err := d.leasedKeysOf(w.Context(), d.currentListing(prefix, after))
		if err != nil {
			return false
		}
		conds = append(conds, d.tombstonesComplete(after, leased)...)
		reads = append(reads, findChange(d.keys.prefixRange(prefix), after, until), findChange(d.keys.tombstoneRange(prefix), after, until))
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

// hasKeys does not look at the count, which is of the whole range.
func hasKeys(r *pb.ResponseOp) bool { return len(r.GetResponseRange().Kvs) > 0 }

// watchCreated requests progress: perhaps there is nothing to deliver.
func (r *replay) watchCreated(id, revision int64) { r.stream.requestProgress() }

func (r *replay) commitComplete(g commitEvents) {
	if r.finished || g.revision <= r.position || g.revision > r.until {
		return
	}
	r.w.pushReplayed(r.w.d.toBatch(g))
	r.position = g.revision
}

func (r *replay) progressReached(revision int64) {
	if r.finished {
		return
	}
	if r.w.isOutdated() {
		r.fail()
		return
	}
	if r.position = max(r.position, min(revision, r.until)); r.position == r.until {
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
