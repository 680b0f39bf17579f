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

// hub is the one tape that all watchers of this opener share. It has one of
// etcd's watches for each prefix that anybody wants, and plays each from the
// time that it was first wanted: what a watcher wants of before, and what one
// misses that does not keep up, a catchup tells it.
type hub struct {
	d *db

	mu     sync.Mutex
	tape   *tape            // nil before the first watcher
	epoch  int              // that the tape is of
	over   bool             // the epoch has ended, and the next tape is to begin
	stop   func()           // ends the tape
	pos    int64            // every commit up to here was handed out; 0: none was yet
	last   int64            // the newest id
	marker int64            // the id of the watch of the store's marker
	feeds  map[string]*feed // by prefix
	ids    map[int64]*feed
	index  opener.Index[*watcher]
}

// feed is one of etcd's watches.
type feed struct {
	id      int64
	prefix  string
	created bool
	from    int64 // it tells of what happened after
}

func newHub(d *db) *hub {
	return &hub{d: d, feeds: map[string]*feed{}, ids: map[int64]*feed{}, index: opener.Index[*watcher]{}}
}

// run plays one tape after the other until the opener is closed.
func (h *hub) run() {
	for n := 0; ; n++ {
		ctx, stop := context.WithCancel(h.d.Context())
		t, before := h.begin(stop)
		err := t.run(ctx)
		stop()
		if errors.Is(err, rpctypes.ErrPermissionDenied) {
			h.failAll(h.d.explain(h.d.Context(), err))
		}
		if h.moved(before) {
			n = 0
		}
		if pause(h.d.Context(), n) != nil {
			return
		}
	}
}

// begin is a new tape with all feeds. They go on where the one before ended: not
// right after, since etcd does not say how far it is with a watch that begins in
// the future. In another epoch they begin anew.
func (h *hub) begin(stop func()) (t *tape, pos int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		h.pos, h.over = 0, false
	}
	h.tape, h.stop, h.epoch = newTape(h.d, h), stop, h.d.history.lastSeen().epoch
	h.watchMarker(h.pos)
	for _, f := range h.feeds {
		f.created = false
		h.tape.watch(f.id, h.d.space.below(f.prefix), h.pos)
	}
	return h.tape, h.pos
}

// watchMarker begins the watch that tells if the store is deleted.
func (h *hub) watchMarker(start int64) {
	h.last++
	h.marker = h.last
	h.tape.watch(h.marker, span{begin: h.d.space.marker()}, start)
}

func (h *hub) moved(before int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.pos > before
}

// join has the hub feed the watcher: at once, or once its feeds are created.
func (h *hub) join(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Context().Err() != nil {
		return // it was closed beside its Next, and has left
	}
	if w.outdated() {
		w.fail(store.ErrCompacted)
		return
	}
	if h.tape == nil {
		h.tape = newTape(h.d, h) // begin replaces it
		h.d.Go(h.run)
	}
	h.index.Add(w, w.Prefixes)
	for _, prefix := range w.Prefixes {
		if h.feeds[prefix] == nil {
			h.last++
			f := &feed{id: h.last, prefix: prefix}
			h.feeds[prefix], h.ids[f.id] = f, f
			h.tape.watch(f.id, h.d.space.below(prefix), 0)
		}
	}
	h.settle(w)
}

// settle has a watcher live, once its feeds are created, after the position that
// all of them tell from. The caller holds the lock.
func (h *hub) settle(w *watcher) {
	from := h.pos
	for _, prefix := range w.Prefixes {
		f := h.feeds[prefix]
		if !f.created {
			return
		}
		from = max(from, f.from)
	}
	w.settle(from)
}

// leave is idempotent.
func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.drop(w)
}

func (h *hub) drop(w *watcher) {
	for _, prefix := range h.index.Remove(w, w.Prefixes) {
		f := h.feeds[prefix]
		delete(h.feeds, prefix)
		delete(h.ids, f.id)
		h.tape.unwatch(f.id)
	}
}

// created, of the marker, is the first that a tape hears, of a cluster that may be
// an older copy of the one before: only whoever asks notices.
func (h *hub) created(id, revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	if id == h.marker {
		h.d.Go(func() { _ = h.d.askRevision(h.d.Context()) }) // or it is closed
	}
	if h.pos == 0 {
		h.pos = revision
	}
	f := h.ids[id]
	if f == nil {
		return
	}
	f.created, f.from = true, revision
	for w := range h.index[f.prefix] {
		h.settle(w)
	}
}

func (h *hub) changed(c change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || c.revision <= h.pos {
		return // told before the tape was changed
	}
	h.d.history.noteRevision(h.epoch, c.revision)
	if e := c.events[h.d.space.marker()]; e != nil && e.Type == mvccpb.DELETE {
		h.d.SetGone()
	}
	for w, b := range h.index.Parts(h.d.batch(c)) {
		if !w.push(b) {
			h.drop(w)
		}
	}
	h.pos = c.revision
}

// batch is the change in the store's own keys; the marker is none.
func (d *db) batch(c change) store.Batch {
	b := store.Batch{Revision: c.revision}
	for at, e := range c.events {
		if at != d.space.marker() {
			b.Events = append(b.Events, store.Event{Key: d.space.name(e.Kv.Key), Deleted: e.Type == mvccpb.DELETE, Value: e.Kv.Value})
		}
	}
	return b
}

func (h *hub) told(revision int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.d.history.noteRevision(h.epoch, revision)
	h.pos = max(h.pos, revision)
}

func (h *hub) trimmed(id, kept int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over {
		return
	}
	h.pos = max(h.pos, kept)
	if id == h.marker {
		h.tape.unwatch(id)
		h.watchMarker(0) // who takes the fresh snapshot sees if the store is gone
		return
	}
	if f := h.ids[id]; f != nil {
		for w := range h.index[f.prefix] {
			w.fail(store.ErrCompacted)
			h.drop(w)
		}
	}
}

func (h *hub) failAll(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.dropAll(err)
}

// dropAll ends all watchers. The caller holds the lock.
func (h *hub) dropAll(err error) {
	for _, watchers := range h.index {
		for w := range watchers {
			w.fail(err)
			h.drop(w)
		}
	}
}
