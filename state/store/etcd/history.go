package etcd

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"bijou/state/store"
)

// historyTracker notices that the cluster's revisions went back, as they do when its
// operator restores a snapshot, or that another cluster answers. What was read
// before says nothing of what is there then: an epoch ends and the next begins.
//
// It must never find so wrongly, and does not, since it compares only what etcd promises:
//
//   - A revision that any member has reported, in an answer or to a watch, is one that a
//     quorum has agreed on. It stays as long as the cluster keeps its word.
//   - A linearizable answer's revision is not below any that was agreed on before
//     its request began. So each request remembers what was seen when it began, and
//     its answer is compared with that: not with what was seen meanwhile, for
//     answers to requests that overlap come in any order. Serializable answers and
//     watches may be of a member that is behind: they raise what was seen and are
//     compared with nothing.
//   - A cluster's id never changes. It need not be another after a restore, since
//     it is made of the members' names and addresses.
//   - An answer to a request that began in an epoch which has ended since, and what
//     a stream of that epoch delivers, may be of the old history or the new one. It is
//     ignored: else it would raise what was seen to what is no more.
//
// Compactions, restarts and changes of leader leave all of this as it is. Raft's
// terms are not looked at: a candidate counts one up and may not come through.
//
// It does not notice a history that has overtaken what this process had seen before it
// asks for the first time.
type historyTracker struct {
	mu    sync.Mutex
	state historyState
}

type historyState struct {
	epoch    int
	cluster  uint64 // 0: nobody has answered yet
	revision int64  // the highest that was reported
}

// lastSeen returns the state to give to recordResponse. Callers call it before they send a request.
func (h *historyTracker) lastSeen() historyState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

func (h *historyTracker) recordRevision(epoch int, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch == h.state.epoch {
		h.state.revision = max(h.state.revision, revision)
	}
}

// recordResponse records the revision of an answer, and reports whether the answer has ended the epoch.
// before is the result of lastSeen from before the request. The answer must be linearizable.
func (h *historyTracker) recordResponse(before historyState, answer *pb.ResponseHeader) (over bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if before.epoch != h.state.epoch {
		return false
	}

	other := before.cluster != 0 && answer.ClusterId != before.cluster
	if other || answer.Revision < before.revision {
		h.state = historyState{epoch: before.epoch + 1, cluster: answer.ClusterId, revision: answer.Revision}
		return true
	}

	if h.state.cluster == 0 {
		h.state.cluster = answer.ClusterId
	}
	h.state.revision = max(h.state.revision, answer.Revision)
	return false
}

// observeResponse records a linearizable answer to a request that was sent when the history was as in before. It
// returns the answer's epoch: a new one if the answer shows that the history was replaced, else the request's,
// even if that has ended meanwhile.
func (d *db) observeResponse(before historyState, answer *pb.ResponseHeader) (epoch int) {
	epochEnded := d.history.recordResponse(before, answer)
	if !epochEnded {
		return before.epoch
	}

	d.startEpoch(before, answer)
	return before.epoch + 1
}

// startEpoch makes all parts of this process read everything again after etcd's history was replaced.
// Watchers end as if they had missed changes. Leases count as lost, since their keys may be missing.
func (d *db) startEpoch(before historyState, answer *pb.ResponseHeader) {
	what := "etcd's data are older than before, as after restoring a snapshot: reading everything again"
	if answer.ClusterId != before.cluster {
		what = "a different etcd cluster answers: reading everything again"
	}
	slog.Warn(what,
		"members", d.config.endpointList(), "revision", answer.Revision, "seen before", before.revision)
	d.watches.endEpoch()
	d.LoseLeases()
}

// endEpoch ends all watches, since the cluster's revisions have gone back. The watchers return
// ErrHistoryLost.
func (m *watchMux) endEpoch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stream == nil {
		return
	}

	m.epochEnded = true
	if m.stopStream != nil {
		m.stopStream()
	}
	m.failAllLocked(store.ErrHistoryLost)
}

// probeRevision reads until etcd answers, so that observeResponse sees whether etcd's history was replaced.
// It returns an error only if ctx or the handle ends.
func (d *db) probeRevision(ctx context.Context) error {
	for n := 0; ; n++ {
		_, err := d.get(ctx, d.keys.markerKey(), clientv3.WithCountOnly())
		if err == nil || d.CheckUsable(ctx) != nil || waitBackoff(ctx, n) != nil {
			return err
		}
	}
}

// checkStartRevision ends a watcher that begins after a revision that etcd has not reached: such a revision
// belongs to an earlier history. It asks etcd first, since a different process may have seen newer
// revisions than this one.
func (d *db) checkStartRevision(w *watcher, after int64) {
	if err := d.probeRevision(w.Context()); err == nil && d.history.lastSeen().revision < after {
		d.watches.removeWatcher(w)
		w.fail(store.ErrHistoryLost)
	}
}

const (
	// sweepInterval is how long a tombstone stays at least. A prefix condition older
	// than a sweep does not hold, and its caller reads again.
	sweepInterval = 9 * time.Minute
	// maxUnsweptTombstones are not worth a sweep.
	maxUnsweptTombstones = 1000
)

// sweeper deletes tombstones that are older than its last round.
type sweeper struct {
	d *db

	mu           sync.Mutex
	lastRevision int64 // of the round before
	lastEpoch    int
	lastRound    time.Time
}

// Sweep deletes the tombstones that were there at the call before it, if there are many. A call that
// comes too soon after that does nothing.
func (d *db) Sweep(ctx context.Context) error {
	d.sweeper.mu.Lock()
	defer d.sweeper.mu.Unlock()
	if time.Since(d.sweeper.lastRound) < sweepInterval {
		return nil
	}

	return d.sweeper.sweepOld(ctx, maxUnsweptTombstones)
}

// sweepOld removes the tombstones that were there in the last round already, if there are more than above.
func (s *sweeper) sweepOld(ctx context.Context, above int64) error {
	tombstones := s.d.keys.tombstoneRange("")
	resp, err := s.d.get(ctx, tombstones.begin, clientv3.WithRange(tombstones.end), clientv3.WithCountOnly())
	if err != nil {
		return err
	}

	before := s.lastRevision
	epoch := s.lastEpoch
	s.lastRevision, s.lastEpoch = resp.Header.Revision, s.d.history.lastSeen().epoch
	s.lastRound = time.Now()
	if before == 0 || epoch != s.lastEpoch || resp.Count <= above {
		return nil
	}

	return s.sweepUpTo(ctx, before)
}

// sweepUpTo removes the tombstones that are not newer than the revision. It first writes that they may be
// missing, so that no condition relies on them from then on.
func (s *sweeper) sweepUpTo(ctx context.Context, upto int64) error {
	d := s.d
	later := clientv3.Compare(clientv3.Value(d.keys.sweptKey()), "<", sweptValue(upto))
	_, err := d.client.Txn(ctx).If(d.markerUnchanged(), later).
		Then(clientv3.OpPut(d.keys.sweptKey(), sweptValue(upto))).Commit()
	if err != nil {
		return d.storeError(ctx, err)
	}

	tombstones := d.keys.tombstoneRange("")
	return readPages(tombstones, func(begin, end string, limit int64) (*clientv3.GetResponse, error) {
		resp, err := d.get(ctx, begin, clientv3.WithRange(end), clientv3.WithLimit(limit),
			clientv3.WithKeysOnly())
		if err != nil {
			return nil, err
		}
		return resp, s.deleteTombstones(ctx, resp, upto)
	})
}

// deleteTombstones deletes the listed tombstones, except those that were written again after upto.
func (s *sweeper) deleteTombstones(ctx context.Context, resp *clientv3.GetResponse, upto int64) error {
	for kvs := range slices.Chunk(resp.Kvs, maxRootOps) {
		var ops []clientv3.Op
		for _, kv := range kvs {
			old := clientv3.Compare(clientv3.ModRevision(string(kv.Key)), "<", upto+1)
			ops = append(ops,
				clientv3.OpTxn([]clientv3.Cmp{old}, []clientv3.Op{clientv3.OpDelete(string(kv.Key))}, nil))
		}

		if _, err := s.d.client.Txn(ctx).If(s.d.markerUnchanged()).Then(ops...).Commit(); err != nil {
			return s.d.storeError(ctx, err)
		}
	}

	return nil
}
