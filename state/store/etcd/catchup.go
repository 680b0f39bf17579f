package etcd

import (
	"context"
	"slices"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// catchup is a tape of one watcher's own, for what was before the hub feeds it.
type catchup struct {
	w     *watcher
	tape  *tape
	pos   int64 // everything up to here was told
	until int64
	stop  context.CancelFunc
	over  bool
}

// catchUp tells the watcher what happened after the one revision, up to the other.
func (d *db) catchUp(w *watcher, after, until int64) {
	if d.nothingBetween(w, after, until) {
		w.caughtUp()
		return
	}
	c := &catchup{w: w, pos: after, until: until}
	for n := 0; ; n++ {
		ctx, cancel := context.WithCancel(w.Context())
		c.tape, c.stop = newTape(d, c), cancel
		for i, prefix := range w.Prefixes {
			c.tape.watch(int64(i+1), d.space.below(prefix), c.pos+1)
		}
		_ = c.tape.run(ctx) // what has broken is tried again; what cannot, the hub hears, too
		cancel()
		if c.over || w.failed() || pause(w.Context(), n) != nil {
			return
		}
	}
}

// nothingBetween says if certainly nothing is to be told. It is mostly so, where
// others have committed between a snapshot and its watch; and asking is fast,
// while etcd begins a watch of the past only at its next tenth of a second. All
// is read as of until: what comes later, the hub tells.
func (d *db) nothingBetween(w *watcher, after, until int64) bool {
	var conds []clientv3.Cmp
	var reads []clientv3.Op
	for _, prefix := range w.Prefixes {
		leased, err := d.leasedIn(w.Context(), d.listing(prefix, after))
		if err != nil {
			return false
		}
		conds = append(conds, d.allMarked(after, leased)...)
		reads = append(reads, changesIn(d.space.below(prefix), after, until), changesIn(d.space.marksBelow(prefix), after, until))
	}
	if max(len(conds), len(reads)) > maxRoot {
		return false
	}
	ctx, cancel := context.WithTimeout(w.Context(), firstAttempt)
	defer cancel()
	resp, err := d.client.Txn(ctx).If(conds...).Then(reads...).Commit()
	return err == nil && resp.Succeeded && !slices.ContainsFunc(resp.Responses, found)
}

// changesIn reads a key of the span that was put after the one revision, as of
// the other.
func changesIn(s span, after, until int64) clientv3.Op {
	return clientv3.OpGet(s.begin, clientv3.WithRange(s.end), clientv3.WithRev(until), clientv3.WithMinModRev(after+1),
		clientv3.WithLimit(1), clientv3.WithKeysOnly())
}

// found says if a read has found a key. Its count is of the whole span.
func found(r *pb.ResponseOp) bool { return len(r.GetResponseRange().Kvs) > 0 }

// created asks how far the watch is: perhaps there is nothing to tell.
func (c *catchup) created(id, revision int64) { c.tape.ask() }

func (c *catchup) changed(g change) {
	if c.over || g.revision <= c.pos || g.revision > c.until {
		return
	}
	c.w.tell(c.w.d.batch(g))
	c.pos = g.revision
}

func (c *catchup) told(revision int64) {
	if c.over {
		return
	}
	if c.w.outdated() {
		c.fail()
		return
	}
	if c.pos = max(c.pos, min(revision, c.until)); c.pos == c.until {
		c.w.caughtUp()
		c.end()
	}
}

func (c *catchup) trimmed(id, kept int64) {
	if !c.over {
		c.fail()
	}
}

// fail ends the watcher, too.
func (c *catchup) fail() {
	c.w.d.hub.leave(c.w)
	c.w.fail(store.ErrCompacted)
	c.end()
}

func (c *catchup) end() {
	c.over = true
	c.stop()
}
