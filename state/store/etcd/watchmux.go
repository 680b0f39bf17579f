package etcd

import (
	"context"
	"errors"
	"sync"

	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// watchMux is the one tape that all watchers of this opener share. It has one of
// etcd's watches for each prefix that anybody wants, and plays each from the
// time that it was first wanted: what a watcher wants of before, and what one
// misses that does not keep up, a catchup tells it.
type watchMux struct {
	d *db

	mu         sync.Mutex
	stream     *watchStream            // nil before the first watcher
	epoch      int                     // that the tape is of
	epochEnded bool                    // the epoch has ended, and the next tape is to begin
	stopStream func()                  // ends the tape
	position   int64                   // every commit up to here was handed out; 0: none was yet
	lastID     int64                   // the newest id
	markerID   int64                   // the id of the watch of the store's marker
	byPrefix   map[string]*prefixWatch // by prefix
	byID       map[int64]*prefixWatch
	index      opener.WatcherIndex[*watcher]
}

// prefixWatch is one of etcd's watches.
type prefixWatch struct {
	id       int64
	prefix   string
	created  bool
	position int64 // it tells of what happened after
}

func newWatchMux(d *db) *watchMux {
	return &watchMux{d: d, byPrefix: map[string]*prefixWatch{}, byID: map[int64]*prefixWatch{}, index: opener.WatcherIndex[*watcher]{}}
}

// run plays one tape after the other until the opener is closed.
func (h *watchMux) run() {
	for n := 0; ; n++ {
		ctx, stop := context.WithCancel(h.d.Context())
		t, before := h.startStream(stop)
		err := t.run(ctx)
		stop()
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			h.failAll(h.d.storeError(h.d.Context(), err))
		}
		if h.hasAdvanced(before) {
			n = 0
		}
		if waitBackoff(h.d.Context(), n) != nil {
			return
		}
	}
}

// startStream is a new tape with all feeds. They go on where the one before ended: not
// right after, since etcd does not say how far it is with a watch that begins in
// the future. In another epoch they begin anew.
func (h *watchMux) startStream(stop func()) (t *watchStream, pos int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochEnded {
		h.position, h.epochEnded = 0, false
	}
	h.stream, h.stopStream, h.epoch = newWatchStream(h.d, h), stop, h.d.history.lastSeen().epoch
	h.watchMarker(h.position)
	for _, f := range h.byPrefix {
		f.created = false
		h.stream.addWatch(f.id, h.d.keys.prefixRange(f.prefix), h.position)
	}
	return h.stream, h.position
}

// watchMarker begins the watch that tells if the store is deleted.
func (h *watchMux) watchMarker(start int64) {
	h.lastID++
	h.markerID = h.lastID
	h.stream.addWatch(h.markerID, keyRange{begin: h.d.keys.markerKey()}, start)
}

func (h *watchMux) hasAdvanced(before int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.position > before
}

// addWatcher has the hub feed the watcher: at once, or once its feeds are created.
func (h *watchMux) addWatcher(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Context().Err() != nil {
		return // it was closed beside its Next, and has left
	}
	if w.isOutdated() {
		w.fail(store.ErrCompacted)
		return
	}
	if h.stream == nil {
		h.stream = newWatchStream(h.d, h) // begin replaces it
		h.d.Go(h.run)
	}
	h.index.Add(w, w.Prefixes)
	for _, prefix := range w.Prefixes {
		if h.byPrefix[prefix] == nil {
			h.lastID++
			f := &prefixWatch{id: h.lastID, prefix: prefix}
			h.byPrefix[prefix], h.byID[f.id] = f, f
			h.stream.addWatch(f.id, h.d.keys.prefixRange(prefix), 0)
		}
	}
	h.goLiveIfCreated(w)
}

// goLiveIfCreated has a watcher live, once its feeds are created, after the position that
// all of them tell from. The caller holds the lock.
func (h *watchMux) goLiveIfCreated(w *watcher) {
	from := h.position
	for _, prefix := range w.Prefixes {
		f := h.byPrefix[prefix]
		if !f.created {
			return
		}
		from = max(from, f.position)
	}
	w.goLive(from)
}

// removeWatcher is idempotent.
func (h *watchMux) removeWatcher(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.removeLocked(w)
}

func (h *watchMux) removeLocked(w *watcher) {
	for _, prefix := range h.index.Remove(w, w.Prefixes) {
		f := h.byPrefix[prefix]
		delete(h.byPrefix, prefix)
		delete(h.byID, f.id)
		h.stream.cancelWatch(f.id)
	}
}

// watchCreated, of the marker, is the first that a tape hears, of a cluster that may be
// an older copy of the one before: only whoever asks notices.
func (h *watchMux) watchCreated(id, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochEnded {
		return
	}
	if id == h.markerID {
		h.d.Go(func() { _ = h.d.probeRevision(h.d.Context()) }) // or it is closed
	}
	if h.position == 0 {
		h.position = revision
	}
	f := h.byID[id]
	if f == nil {
		return
	}
	f.created, f.position = true, revision
	for w := range h.index[f.prefix] {
		h.goLiveIfCreated(w)
	}
}

func (h *watchMux) commitComplete(c commitEvents) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochEnded || c.revision <= h.position {
		return // told before the tape was changed
	}
	h.d.history.recordRevision(h.epoch, c.revision)
	if e := c.events[h.d.keys.markerKey()]; e != nil && e.Type == mvccpb.DELETE {
		h.d.MarkGone()
	}
	for w, b := range h.index.SplitBatch(h.d.toBatch(c)) {
		if !w.push(b) {
			h.removeLocked(w)
		}
	}
	h.position = c.revision
}

// toBatch is the change in the store's own keys; the marker is none.
func (d *db) toBatch(c commitEvents) store.Batch {
	b := store.Batch{Revision: c.revision}
	for at, e := range c.events {
		if at != d.keys.markerKey() {
			b.Events = append(b.Events, store.Event{Key: d.keys.decodeKey(e.Kv.Key), Deleted: e.Type == mvccpb.DELETE, Value: e.Kv.Value})
		}
	}
	return b
}

func (h *watchMux) progressReached(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochEnded {
		return
	}
	h.d.history.recordRevision(h.epoch, revision)
	h.position = max(h.position, revision)
}

func (h *watchMux) watchCompacted(id, kept int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.epochEnded {
		return
	}
	h.position = max(h.position, kept)
	if id == h.markerID {
		h.stream.cancelWatch(id)
		h.watchMarker(0) // who takes the fresh snapshot sees if the store is gone
		return
	}
	if f := h.byID[id]; f != nil {
		for w := range h.index[f.prefix] {
			w.fail(store.ErrCompacted)
			h.removeLocked(w)
		}
	}
}

func (h *watchMux) failAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failAllLocked(err)
}

// failAllLocked ends all watchers. The caller holds the lock.
func (h *watchMux) failAllLocked(err error) {
	for _, watchers := range h.index {
		for w := range watchers {
			w.fail(err)
			h.removeLocked(w)
		}
	}
}
