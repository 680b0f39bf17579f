package sqlite

import (
	"context"
	"sync"
	"time"

	"bijou/state/store/opener"
)

// maxReadCommits is how many commits one read of the log takes at most.
const maxReadCommits = 256

// logTailer is the one tailer of the change log in this process. It reads every
// commit once and hands it to the watchers that it concerns.
//
// Watchers come to it when they have read up to its position by themselves,
// and are dropped when they do not keep up; then they read for themselves
// again, so that a slow one neither blocks others nor misses anything.
type logTailer struct {
	d      *db
	wakeup chan struct{} // one is enough: it says "look", not "there is one"

	mu       sync.Mutex
	position int64 // every commit up to here was handed out; means nothing without watchers
	watchers map[*watcher]bool
	index    opener.WatcherIndex[*watcher]
}

func newLogTailer(d *db) *logTailer {
	return &logTailer{d: d, wakeup: make(chan struct{}, 1), watchers: map[*watcher]bool{}, index: opener.WatcherIndex[*watcher]{}}
}

// wakeUp says that there may be commits.
func (h *logTailer) wakeUp() {
	select {
	case h.wakeup <- struct{}{}:
	default:
	}
}

func (h *logTailer) run() {
	poll := time.NewTicker(h.d.options.PollInterval)
	defer poll.Stop()
	for {
		select {
		case <-h.wakeup:
		case <-poll.C:
			if h.d.checkFile() != nil {
				return // the watchers know it from d.Gone()
			}
		case <-h.d.Closed():
			return
		}
		for h.deliverNew() {
		}
	}
}

// deliverNew hands out what is new and says if there is more. After an error the
// next poll tries again; one that lasts reaches everybody by their snapshots.
func (h *logTailer) deliverNew() (more bool) {
	h.mu.Lock()
	from, idle := h.position, len(h.watchers) == 0
	h.mu.Unlock()
	if idle {
		return false
	}
	var s logSegment
	err := h.d.readers.withConn(context.Background(), func(c *conn) (err error) {
		s, err = readLog(c, from, maxReadCommits, anyKey)
		return err
	})
	if err != nil {
		return false
	}
	h.deliverSegment(from, s)
	return s.more
}

// deliverSegment gives each watcher its parts. Everything was read, not only what
// concerned the watchers of that moment: others may have joined since.
func (h *logTailer) deliverSegment(from int64, s logSegment) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.position != from {
		return // the watchers have changed altogether meanwhile
	}
	if s.trimmed > from {
		for w := range h.watchers {
			h.detachLocked(w, from)
		}
		return
	}
	for _, b := range s.batches {
		for w, part := range h.index.SplitBatch(b) {
			if b.Revision > w.joinedAt && !w.push(part) {
				h.detachLocked(w, b.Revision-1)
			}
		}
	}
	h.position = s.end
}

func anyKey(string) bool { return true }

// addWatcher takes a watcher in that has read up to pos by itself. If the hub is
// farther already, the watcher has to read on.
func (h *logTailer) addWatcher(w *watcher, pos int64) bool {
	h.d.doorbell.listen(h.wakeUp)
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.Context().Err() != nil {
		return false // it was closed beside its Next, and has left
	}
	if len(h.watchers) == 0 {
		h.position = pos
	}
	if h.position > pos {
		return false
	}
	w.setLive(pos)
	h.watchers[w] = true
	h.index.Add(w, w.Prefixes)
	h.wakeUp() // there may have been a commit since it read
	return true
}

// removeWatcher is for a watcher that is closed.
func (h *logTailer) removeWatcher(w *watcher) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watchers[w] {
		h.detachLocked(w, 0)
	}
}

// detachLocked sends a watcher back to reading for itself, from pos on. The caller
// holds the lock.
func (h *logTailer) detachLocked(w *watcher, pos int64) {
	delete(h.watchers, w)
	h.index.Remove(w, w.Prefixes)
	w.setBehind(pos)
}
