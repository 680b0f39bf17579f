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

// historyTracker notices that the cluster's history was replaced. This happens if the cluster's operator
// restores a snapshot, so that the revisions go back, or if another cluster answers. All data that this
// process has read before is then outdated. An epoch is the time between two replacements. The tracker
// numbers the epochs.
//
// The tracker never reports a replacement by mistake, since it relies only on these promises of etcd:
//
//   - A revision that any member has reported, in an answer or to a watch, was agreed on by a quorum. Such a revision
//     stays in the history, unless the history is replaced.
//   - The revision of a linearizable answer is not below any revision that was agreed on before its request began.
//     So the answer is compared with the highest revision that was seen when its request began. It is not compared
//     with revisions that were seen later, since answers to overlapping requests arrive in any order.
//   - Serializable answers and watches may come from a member that is behind. They can raise the highest revision,
//     but are not compared with it.
//   - The id of a cluster never changes. After a restore, the new cluster can have the same id, since the id is
//     computed from the members' names and addresses.
//   - If an epoch ends during a request or a stream, the answers may come from the old history or from the
//     new one. The tracker ignores such answers. Otherwise they could raise the highest revision to a revision of
//     the old history.
//
// Compactions, restarts and changes of the leader do not affect this. Raft's terms are not compared, since a
// candidate can raise the term without being elected.
//
// The tracker does not notice a replacement if the new history has passed the highest seen revision before
// this process sends its first request.
type historyTracker struct {
	mu    sync.Mutex
	state historyState
}

type historyState struct {
	epoch    int
	cluster  uint64 // the cluster's id; 0 before the first answer
	revision int64  // the highest revision that was reported
}

// lastSeen returns the current state. Callers call it before they send a request, and pass the state to
// recordResponse.
func (h *historyTracker) lastSeen() historyState {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state
}

// recordRevision records a revision that a member has reported in the epoch. It ignores revisions of an earlier
// epoch.
func (h *historyTracker) recordRevision(epoch int, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if epoch == h.state.epoch {
		h.state.revision = max(h.state.revision, revision)
	}
}

// recordResponse records the revision of an answer. If the answer shows that the history was replaced, it
// starts a new epoch and returns true. It ignores the answer if the epoch has already ended during the request.
// before is the state that lastSeen returned before the request was sent. The answer must be linearizable.
func (h *historyTracker) recordResponse(before historyState, answer *pb.ResponseHeader) (epochEnded bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	// After a change of the epoch, the answer may come from either history.
	if before.epoch != h.state.epoch {
		return false
	}

	// Before the first answer, the cluster is unknown.
	otherCluster := before.cluster != 0 && answer.ClusterId != before.cluster
	if otherCluster || answer.Revision < before.revision {
		h.state = historyState{epoch: before.epoch + 1, cluster: answer.ClusterId, revision: answer.Revision}
		return true
	}

	if h.state.cluster == 0 {
		h.state.cluster = answer.ClusterId
	}
	h.state.revision = max(h.state.revision, answer.Revision)
	return false
}

// observeResponse records a linearizable answer, and returns the answer's epoch. If the answer shows that the
// history was replaced, this is a new epoch, and all watchers and leases end. Otherwise it is the request's
// epoch, even if that epoch has ended in the meantime. before is the state that lastSeen returned before the
// request was sent.
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
	warning := "etcd's data are older than before, as after a restored snapshot: reading everything again"
	if answer.ClusterId != before.cluster {
		warning = "a different etcd cluster answers: reading everything again"
	}
	slog.Warn(warning,
		"members", d.config.endpointList(), "revision", answer.Revision, "seen before", before.revision)
	d.watches.endEpoch()
	d.LoseLeases()
}

// endEpoch ends the stream and all watchers, since the cluster's history was replaced. The watchers return
// ErrHistoryLost, and run starts a new stream.
func (m *watchMux) endEpoch() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stream == nil {
		return // there was no watcher yet
	}

	m.epochEnded = true
	// Before the first call of startStream, there is nothing to stop.
	if m.stopStream != nil {
		m.stopStream()
	}
	m.failAllLocked(store.ErrHistoryLost)
}

// probeRevision reads until etcd answers, so that observeResponse sees whether etcd's history was replaced.
// It returns an error only if ctx is done, the handle is closed, or the store is gone.
func (d *db) probeRevision(ctx context.Context) error {
	for n := 0; ; n++ {
		_, err := d.get(ctx, d.keys.markerKey(), clientv3.WithCountOnly())
		if err == nil {
			return nil
		}
		if d.CheckUsable(ctx) != nil || waitBackoff(ctx, n) != nil {
			return err
		}
	}
}

// checkStartRevision ends the watcher with ErrHistoryLost if its start revision, after, is above etcd's newest
// revision. Such a start revision belongs to an earlier history. checkStartRevision first reads etcd's newest
// revision, since the start revision may come from another process that has seen newer revisions than this one.
func (d *db) checkStartRevision(w *watcher, after int64) {
	if err := d.probeRevision(w.Context()); err == nil && d.history.lastSeen().revision < after {
		d.watches.removeWatcher(w)
		w.fail(store.ErrHistoryLost)
	}
}

const (
	// sweepInterval is the minimum time for which a tombstone is kept. A prefix condition that is older than
	// the swept tombstones does not hold, and its caller must read again.
	sweepInterval = 9 * time.Minute
	// maxUnsweptTombstones is how many tombstones there can be before Sweep deletes any.
	maxUnsweptTombstones = 1000
)

// sweeper deletes tombstones that are older than its previous round.
type sweeper struct {
	d *db

	mu           sync.Mutex
	lastRevision int64     // etcd's revision at the previous round; 0 before the first round
	lastEpoch    int       // the epoch of lastRevision
	lastRound    time.Time // when the previous round began
}

// Sweep does a round, which deletes the tombstones that existed in the previous round, if there are more than
// maxUnsweptTombstones in total. The first round of an epoch deletes none. Sweep does nothing if the previous
// round was less than sweepInterval ago.
func (d *db) Sweep(ctx context.Context) error {
	d.sweeper.mu.Lock()
	defer d.sweeper.mu.Unlock()
	if time.Since(d.sweeper.lastRound) < sweepInterval {
		return nil
	}

	return d.sweeper.sweepOld(ctx, maxUnsweptTombstones)
}

// sweepOld records a round, and removes the tombstones that existed in the previous round. It removes none in
// the first round, in the first round of a new epoch, or if the total number of tombstones is not above
// maxUnswept. The caller holds s.mu.
func (s *sweeper) sweepOld(ctx context.Context, maxUnswept int64) error {
	tombstones := s.d.keys.tombstoneRange("")
	resp, err := s.d.get(ctx, tombstones.begin, clientv3.WithRange(tombstones.end), clientv3.WithCountOnly())
	if err != nil {
		return err
	}

	previousRevision := s.lastRevision
	previousEpoch := s.lastEpoch
	s.lastRevision = resp.Header.Revision
	s.lastEpoch = s.d.history.lastSeen().epoch
	s.lastRound = time.Now()

	// A revision of an earlier epoch belongs to a different history.
	isFirstRound := previousRevision == 0
	if isFirstRound || previousEpoch != s.lastEpoch || resp.Count <= maxUnswept {
		return nil
	}

	return s.sweepUpTo(ctx, previousRevision)
}

// sweepUpTo removes the tombstones up to the revision. Before that, it writes the revision to sweptKey, so that
// prefix conditions on lower revisions, which would need these tombstones, no longer hold.
func (s *sweeper) sweepUpTo(ctx context.Context, upto int64) error {
	d := s.d
	// Another process may have swept further already. The swept revision must not go back.
	sweptIsLower := clientv3.Compare(clientv3.Value(d.keys.sweptKey()), "<", sweptValue(upto))
	_, err := d.client.Txn(ctx).If(d.markerUnchanged(), sweptIsLower).
		Then(clientv3.OpPut(d.keys.sweptKey(), sweptValue(upto))).Commit()
	if err != nil {
		return d.storeError(ctx, err)
	}

	// It does not matter whether the conditions held: sweptKey may be high enough already, and deleteTombstones
	// checks the marker again.
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

// deleteTombstones deletes the tombstones in resp, except those that were written after the revision upto. It
// deletes nothing if the marker has changed.
func (s *sweeper) deleteTombstones(ctx context.Context, resp *clientv3.GetResponse, upto int64) error {
	for kvs := range slices.Chunk(resp.Kvs, maxRootOps) {
		var ops []clientv3.Op
		for _, kv := range kvs {
			tombstone := string(kv.Key)
			isOld := clientv3.Compare(clientv3.ModRevision(tombstone), "<", upto+1)
			ops = append(ops,
				clientv3.OpTxn([]clientv3.Cmp{isOld}, []clientv3.Op{clientv3.OpDelete(tombstone)}, nil))
		}

		if _, err := s.d.client.Txn(ctx).If(s.d.markerUnchanged()).Then(ops...).Commit(); err != nil {
			return s.d.storeError(ctx, err)
		}
	}

	return nil
}
