package sqlite

import (
	"context"
	"sync"
	"time"

	"bijou/state/store/opener"
)

// readAtOnce is how many commits one read of the log takes at most.
const readAtOnce = 256

// hub is the one tailer of the change log in this process. It reads every
// commit once and hands it to the watchers that it concerns.
//
// Watchers come to it when they have read up to its position by themselves,
// and are dropped when they do not keep up; then they read for themselves
// again, so that a slow one neither blocks others nor misses anything.
type hub struct {
	d     *db
	nudge chan struct{} // one is enough: it says "look", not "there is one"

	mu    sync.Mutex
	pos   int64 // every commit up to here was handed out; means nothing without watchers
	live  map[*watcher]bool
	index opener.Index[*watcher]
}

func newHub(d *db) *hub {
	return &hub{d: d, nudge: make(chan struct{}, 1), live: map[*watcher]bool{}, index: opener.Index[*watcher]{}}
}

// poke says that there may be commits.
func (h *hub) poke() {
	select {
	case h.nudge <- struct{}{}:
	default:
	}
}

func (h *hub) run() {
	poll := time.NewTicker(h.d.options.Poll)
	defer poll.Stop()
	for {
		select {
		case <-h.nudge:
		case <-poll.C:
			if h.d.look() != nil {
				return // the watchers know it from d.Gone()
			}
		case <-h.d.Closed():
			return
		}
		for h.pass() {
		}
	}
}

// pass hands out what is new and says if there is more. After an error the
// next poll tries again; one that lasts reaches everybody by their snapshots.
func (h *hub) pass() (more bool) {
	h.mu.Lock()
	from, idle := h.pos, len(h.live) == 0
	h.mu.Unlock()
	if idle {
		return false
	}
	var s stretch
	err := h.d.readers.with(context.Background(), func(c *conn) (err error) {
		s, err = readLog(c, from, readAtOnce, everything)
		return err
	})
	if err != nil {
		return false
	}
	h.handOut(from, s)
	return s.more
}

// handOut gives each watcher its parts. Everything was read, not only what
// concerned the watchers of that moment: others may have joined since.
func (h *hub) handOut(from int64, s stretch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.pos != from {
		return // the watchers have changed altogether meanwhile
	}
	if s.trimmed > from {
		for w := range h.live {
			h.drop(w, from)
		}
		return
	}
	for _, b := range s.batches {
		for w, part := range h.index.Parts(b) {
			if b.Revision > w.joined && !w.push(part) {
				h.drop(w, b.Revision-1)
			}
		}
	}
	h.pos = s.upto
}

func everything(string) bool { return true }

// join takes a watcher in that has read up to pos by itself. If the hub is
// farther already, the watcher has to read on.
func (h *hub) join(w *watcher, pos int64) bool {
	h.d.bell.listen(h.poke)
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Context().Err() != nil {
		return false // it was closed beside its Next, and has left
	}
	if len(h.live) == 0 {
		h.pos = pos
	}
	if h.pos > pos {
		return false
	}
	w.setLive(pos)
	h.live[w] = true
	h.index.Add(w, w.Prefixes)
	h.poke() // there may have been a commit since it read
	return true
}

// leave is for a watcher that is closed.
func (h *hub) leave(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.live[w] {
		h.drop(w, 0)
	}
}

// drop sends a watcher back to reading for itself, from pos on. The caller
// holds the lock.
func (h *hub) drop(w *watcher, pos int64) {
	delete(h.live, w)
	h.index.Remove(w, w.Prefixes)
	w.setBehind(pos)
}
