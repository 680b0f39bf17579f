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

// watchMux shares one watch stream among all watchers of a handle. It has one of etcd's watches for
// each span that any of them has, from the time that the first came. What happened before, and
// what a watcher misses that does not keep up, it gets by a replay.
type watchMux struct {
	d *db

	mu         sync.Mutex
	stream     *watchStream // nil before the first watcher
	epoch      int          // of the stream
	epochEnded bool         // what the stream still delivers is passed over; the next one begins anew
	stopStream func()
	position   int64 // every commit up to here was handed out; 0: none was yet
	lastID     int64 // of a watch
	markerID   int64 // of the watch of the store's marker
	bySpan     map[handle.Span]*spanWatch
	byID       map[int64]*spanWatch
	index      handle.WatcherIndex[*watcher]
}

// spanWatch is one of etcd's watches.
type spanWatch struct {
	id       int64
	span     handle.Span
	created  bool
	position int64 // it delivers what was committed after
}

// run keeps a stream of watches open until the store is closed.
func (m *watchMux) run() {
	for n := 0; ; n++ {
		ctx, stop := context.WithCancel(m.d.Context())
		stream, before := m.startStream(stop)
		err := stream.run(ctx)
		stop()

		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			err = m.d.storeError(m.d.Context(), err)
			m.mu.Lock()
			m.failAllLocked(err)
			m.mu.Unlock()
		}

		if m.hasAdvanced(before) {
			n = 0
		}
		if waitBackoff(m.d.Context(), n) != nil {
			return
		}
	}
}

// startStream starts a stream from where the former one ended. It does not start right after that, since
// etcd reports no progress of a watch that begins in the future. In a different epoch it begins anew.
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
	m.watchMarker(m.position)

	for _, p := range m.bySpan {
		p.created = false
		m.stream.addWatch(p.id, m.d.keys.spanRange(p.span), m.position)
	}

	return m.stream, m.position
}

func (m *watchMux) watchMarker(start int64) {
	m.lastID++
	m.markerID = m.lastID
	m.stream.addWatch(m.markerID, keyRange{begin: m.d.keys.markerKey()}, start)
}

// hasAdvanced reports whether changes were delivered since the position before.
func (m *watchMux) hasAdvanced(before int64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.position > before
}

// addWatcher adds a watcher to the stream, which watches each span once for all watchers.
func (m *watchMux) addWatcher(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()

	if w.Context().Err() != nil {
		return // it was closed beside its Next, and is removed already
	}
	if w.isOutdated() {
		w.fail(store.ErrHistoryLost)
		return
	}

	if m.stream == nil {
		m.stream = newWatchStream(m.d, m) // startStream replaces it
		m.d.Go(m.run)
	}

	m.index.Add(w, w.Spans)
	for _, span := range w.Spans {
		if m.bySpan[span] == nil {
			m.lastID++
			p := &spanWatch{id: m.lastID, span: span}
			m.bySpan[span] = p
			m.byID[p.id] = p
			m.stream.addWatch(p.id, m.d.keys.spanRange(span), 0)
		}
	}
	m.goLiveIfCreated(w)
}

// goLiveIfCreated makes the watcher live from the first position from which all of its spans' watches
// deliver. The caller holds the lock.
func (m *watchMux) goLiveIfCreated(w *watcher) {
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

func (m *watchMux) removeWatcher(w *watcher) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.removeLocked(w)
}

func (m *watchMux) removeLocked(w *watcher) {
	for _, span := range m.index.Remove(w, w.Spans) {
		p := m.bySpan[span]
		delete(m.bySpan, span)
		delete(m.byID, p.id)
		m.stream.cancelWatch(p.id)
	}
}

// watchCreated notes that etcd has created a watch. The marker's watch is the first one on a stream. The
// stream can lead to a cluster that is an older copy of the previous one, which only a linearizable read
// detects; so watchCreated starts one.
func (m *watchMux) watchCreated(id, revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	if id == m.markerID {
		m.d.Go(func() { _ = m.d.probeRevision(m.d.Context()) }) // it fails only if the handle is closed
	}
	if m.position == 0 {
		m.position = revision
	}
	p := m.byID[id]
	if p == nil {
		return
	}

	p.created = true
	p.position = revision
	for w := range m.index[p.span] {
		m.goLiveIfCreated(w)
	}
}

// commitComplete delivers a commit, all of whose events have arrived, to the watchers.
func (m *watchMux) commitComplete(c commitEvents) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded || c.revision <= m.position {
		return // delivered already by the stream before
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

// progressReached notes that all changes up to the revision have come.
func (m *watchMux) progressReached(revision int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	m.d.history.recordRevision(m.epoch, revision)
	m.position = max(m.position, revision)
}

// watchCompacted handles a watch that begins before the history that etcd keeps.
func (m *watchMux) watchCompacted(id, kept int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epochEnded {
		return
	}

	m.position = max(m.position, kept)
	if id == m.markerID {
		m.stream.cancelWatch(id)
		m.watchMarker(0) // the watchers' fresh snapshots show whether the store is gone
		return
	}

	if p := m.byID[id]; p != nil {
		for w := range m.index[p.span] {
			w.fail(store.ErrHistoryLost)
			m.removeLocked(w)
		}
	}
}

func (m *watchMux) failAllLocked(err error) {
	for _, watchers := range m.index {
		for w := range watchers {
			w.fail(err)
			m.removeLocked(w)
		}
	}
}
