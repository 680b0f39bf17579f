package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// replay is a tape of one watcher's own, for what was before the hub feeds it.
type replay struct {
	w        *watcher
	stream   *watchStream
	position int64 // everything up to here was told
	until    int64
	stop     context.CancelFunc
	finished bool
}

// replayHistory tells the watcher what happened after the one revision, up to the other.
func (d *db) replayHistory(w *watcher, after, until int64) {
	if d.unchangedBetween(w, after, until) {
		w.finishReplay()
		return
	}
	c := &replay{w: w, position: after, until: until}
	for n := 0; ; n++ {
		ctx, cancel := context.WithCancel(w.Context())
		c.stream, c.stop = newWatchStream(d, c), cancel
		for i, prefix := range w.Prefixes {
			c.stream.addWatch(int64(i+1), d.keys.prefixRange(prefix), c.position+1)
		}
		_ = c.stream.run(ctx) // what has broken is tried again; what cannot, the hub hears, too
		cancel()
		if c.finished || w.hasFailed() || waitBackoff(w.Context(), n) != nil {
			return
		}
	}
}

// unchangedBetween says if certainly nothing is to be told. It is mostly so, where
// others have committed between a snapshot and its watch; and asking is fast,
// while etcd begins a watch of the past only at its next tenth of a second. All
// is read as of until: what comes later, the hub tells.
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

// findChange reads a key of the span that was put after the one revision, as of
// the other.
func findChange(s keyRange, after, until int64) clientv3.Op {
	return clientv3.OpGet(s.begin, clientv3.WithRange(s.end), clientv3.WithRev(until), clientv3.WithMinModRev(after+1),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
}

// hasKeys says if a read has found a key. Its count is of the whole span.
func hasKeys(r *pb.ResponseOp) bool { return len(r.GetResponseRange().Kvs) > 0 }

// watchCreated asks how far the watch is: perhaps there is nothing to tell.
func (c *replay) watchCreated(id, revision int64) { c.stream.requestProgress() }

func (c *replay) commitComplete(g commitEvents) {
	if c.finished || g.revision <= c.position || g.revision > c.until {
		return
	}
	c.w.pushReplayed(c.w.d.toBatch(g))
	c.position = g.revision
}

func (c *replay) progressReached(revision int64) {
	if c.finished {
		return
	}
	if c.w.isOutdated() {
		c.fail()
		return
	}
	if c.position = max(c.position, min(revision, c.until)); c.position == c.until {
		c.w.finishReplay()
		c.finish()
	}
}

func (c *replay) watchCompacted(id, kept int64) {
	if !c.finished {
		c.fail()
	}
}

// fail ends the watcher, too.
func (c *replay) fail() {
	c.w.d.watches.removeWatcher(c.w)
	c.w.fail(store.ErrCompacted)
	c.finish()
}

func (c *replay) finish() {
	c.finished = true
	c.stop()
}
