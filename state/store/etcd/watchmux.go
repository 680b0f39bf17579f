package etcd

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// watchMux shares one watch stream among all watchers of a handle. For each span that has watchers, the
// stream has one watch in etcd. It is created for the first watcher of the span. If a watcher needs earlier
// changes, or has missed some, it gets them from a replay.
type watchMux struct {
	d *db

	mu         sync.Mutex
	stream     *watchStream // nil before the first watcher
	epoch      int          // the stream's epoch
	epochEnded bool         // whether to ignore this stream, and begin the next one at the newest revision
	stopStream func()       // ends the stream; nil before run
	position   int64        // the last revision whose changes were delivered; 0 before the first
	lastID     int64        // the last id that was given to a watch
	markerID   int64        // the id of the watch of the store's marker
	bySpan     map[handle.Span]*spanWatch
	byID       map[int64]*spanWatch
	index      handle.WatcherIndex[*watcher]
}

// spanWatch is one of etcd's watches.
type spanWatch struct {
	id       int64
	span     handle.Span
	created  bool
	position int64 // the revision after which the watch delivers changes
}

// run keeps a stream of watches open until the store is closed. If a stream breaks, it starts another. If
// etcd's user has no right to watch a key, all current watchers fail.
func (m *watchMux) run() {
	for n := 0; ; n++ {
		ctx, stop := context.WithCancel(m.d.Context())
		stream, startPosition := m.startStream(stop)
		err := stream.run(ctx)
		stop()

		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			err = m.d.storeError(m.d.Context(), err)
			m.mu.Lock()
			m.failAllLocked(err)
			m.mu.Unlock()
		}

		// A stream that has delivered changes worked, so the next one starts without a long delay.
		if m.hasAdvanced(startPosition) {
			n = 0
		}
		if waitBackoff(m.d.Context(), n) != nil {
			return
		}
	}
}

// startStream prepares a stream that begins at the position of the previous one, and returns the stream and
// that position. The stream does not begin one revision later, since etcd does not report the progress of a
// watch that begins in the future. In a new epoch the stream begins at the newest revision, and the position is
// 0. stop must end the stream.
func (m *watchMux) startStream(stop func()) (stream *watchStream, position int64) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if m.epochEnded {
		m.position = 0
		m.epochEnded = false
	}
	m.stream = newWatchStream(m.d, m)
	m.stopStream = stop
	m.epoch = m.d.history.lastSeen().epoch
	// The commit at the position arrives once more. commitComplete ignores it.
	m.watchMarker(m.position)

	for _, p := range m.bySpan {
		p.created = false
		m.stream.addWatch(p.id, m.d.keys.spanRange(p.span), m.position)
	}

	return m.stream, m.position
}

// watchMarker adds a watch of the store's marker, which shows whether the store is removed. The caller holds
// m.mu.
func (m *watchMux) watchMarker(start int64) {
	m.lastID++
	m.markerID = m.lastID
	m.stream.addWatch(m.markerID, keyRange{begin: m.d.keys.markerKey()}, start)
}

// hasAdvanced reports whether changes after the position before were delivered.
func (m *watchMux) hasAdvanced(before int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position > before
}

// addWatcher adds a watcher to the index, and adds a watch to the stream for each of its spans that has no
// watch yet. A watcher from an earlier epoch fails with ErrHistoryLost.
func (m *watchMux) addWatcher(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if w.Context().Err() != nil {
		// The watcher was closed during its Next, and has already been removed.
		return
	}
	if w.isOutdated() {
		w.fail(store.ErrHistoryLost)
		return
	}

	if m.stream == nil {
		// startStream replaces this stream, and adds its watches to the new one.
		m.stream = newWatchStream(m.d, m)
		m.d.Go(m.run)
	}

	// All watchers of a span share one watch.
	m.index.Add(w, w.Spans)
	for _, span := range w.Spans {
		if m.bySpan[span] == nil {
			m.lastID++
			p := &spanWatch{id: m.lastID, span: span}
			m.bySpan[span] = p
			m.byID[p.id] = p
			// 0 means from the current revision on. The watcher gets earlier changes from a replay.
			m.stream.addWatch(p.id, m.d.keys.spanRange(span), 0)
		}
	}
	m.goLiveIfCreated(w)
}

// goLiveIfCreated makes the watcher live if etcd has created the watches of all its spans. The caller holds
// m.mu.
func (m *watchMux) goLiveIfCreated(w *watcher) {
	// After the highest position of the mux and the spans' watches, the stream delivers the changes of all spans.
	// Earlier changes come from a replay.
	from := m.position
	for _, span := range w.Spans {
		p := m.bySpan[span]
		if !p.created {
			return
		}
		from = max(from, p.position)
	}
	w.goLive(from)
}

// removeWatcher removes the watcher, which may not be in the index.
func (m *watchMux) removeWatcher(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeLocked(w)
}

// removeLocked removes the watcher, and cancels the watches of spans that no longer have a watcher. The caller
// holds m.mu.
func (m *watchMux) removeLocked(w *watcher) {
	for _, span := range m.index.Remove(w, w.Spans) {
		p := m.bySpan[span]
		delete(m.bySpan, span)
		delete(m.byID, p.id)
		m.stream.cancelWatch(p.id)
	}
}

// watchCreated records that etcd has created a watch, which delivers the changes after the revision. If it is the
// watch of the marker, which each stream has, watchCreated also starts a linearizable read. Only such a read
// notices that the stream leads to an older copy of the cluster.
func (m *watchMux) watchCreated(id, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	if id == m.markerID {
		// probeRevision fails only if the handle is closed or the store is gone.
		m.d.Go(func() { _ = m.d.probeRevision(m.d.Context()) })
	}
	// A stream without a position began at the newest revision.
	if m.position == 0 {
		m.position = revision
	}

	p := m.byID[id]
	if p == nil {
		// This is the marker's watch, or a watch that was cancelled in the meantime.
		return
	}

	p.created = true
	p.position = revision
	for w := range m.index[p.span] {
		m.goLiveIfCreated(w)
	}
}

// commitComplete delivers a commit, all of whose events have arrived, to the watchers. It removes watchers whose
// queues are full. If the commit has deleted the store's marker, it marks the store as gone.
func (m *watchMux) commitComplete(c commitEvents) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded || c.revision <= m.position {
		// The stream is outdated, or a previous stream has delivered this commit.
		return
	}

	m.d.history.recordRevision(m.epoch, c.revision)
	if e := c.events[m.d.keys.markerKey()]; e != nil && e.Type == mvccpb.DELETE {
		m.d.MarkGone()
	}

	for w, b := range m.index.SplitBatch(m.d.toBatch(c)) {
		if !w.push(b) {
			m.removeLocked(w)
		}
	}
	m.position = c.revision
}

// toBatch converts the events of a commit. It leaves out the marker.
func (d *db) toBatch(c commitEvents) store.Batch {
	b := store.Batch{Revision: c.revision}
	for key, e := range c.events {
		if key != d.keys.markerKey() {
			b.Events = append(b.Events, store.Event{
				Key:     d.keys.decodeKey(e.Kv.Key),
				Deleted: e.Type == mvccpb.DELETE,
				Value:   e.Kv.Value,
			})
		}
	}

	return b
}

// progressReached records that all changes up to the revision were delivered. It ignores a stream whose epoch
// has ended.
func (m *watchMux) progressReached(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	m.d.history.recordRevision(m.epoch, revision)
	m.position = max(m.position, revision)
}

// watchCompacted handles a watch that has ended because etcd no longer has the history before the revision
// kept. The watchers of its span fail with ErrHistoryLost. So do all watchers if changes before kept were not delivered
// yet. The marker is watched again, from the current revision on.
func (m *watchMux) watchCompacted(id, kept int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	// The next stream must not begin at a revision that etcd no longer has. Changes before it that other spans' watches
	// have sent, or still send, would then be dropped.
	if kept > m.position {
		m.failAllLocked(store.ErrHistoryLost)
		m.position = kept
	}
	if id == m.markerID {
		// Although etcd has ended the watch, it keeps the id until the watch is cancelled.
		m.stream.cancelWatch(id)
		// If the marker was deleted in the meantime, the next new snapshot detects that.
		m.watchMarker(0)
		return
	}

	if p := m.byID[id]; p != nil {
		for w := range m.index[p.span] {
			w.fail(store.ErrHistoryLost)
			m.removeLocked(w)
		}
	}
}

// failAllLocked ends all watchers with the error. The caller holds m.mu.
func (m *watchMux) failAllLocked(err error) {
	for _, watchers := range m.index {
		for w := range watchers {
			w.fail(err)
			m.removeLocked(w)
		}
	}
}
