package sqlite

import (
	"context"
	"sync"
	"time"

	"bijou/state/store/opener"
)

// logTailer reads every commit in the change log once for all watchers of this handle, and
// gives it to those that it concerns.
//
// Watchers are added when they have read up to its position by themselves, and detached
// when they do not keep up; then they read for themselves again, so that a slow one
// neither blocks others nor misses anything.
type logTailer struct {
	d      *db
	wakeup chan struct{} // buffered: one is enough, however many commits there are

	mu       sync.Mutex
	position int64 // every commit up to here was delivered; means nothing without watchers
	watchers map[*watcher]bool
	index    opener.WatcherIndex[*watcher]
}

func newLogTailer(d *db) *logTailer {
	return &logTailer{d: d, wakeup: make(chan struct{}, 1), watchers: map[*watcher]bool{}, index: opener.WatcherIndex[*watcher]{}}
}

func (t *logTailer) wakeUp() {
	select {
	case t.wakeup <- struct{}{}:
	default:
	}
}

func (t *logTailer) run() {
	poll := time.NewTicker(t.d.options.PollInterval)
	defer poll.Stop()
	for {
		select {
		case <-t.wakeup:
		case <-poll.C:
			if t.d.checkFile() != nil {
				return // d.Gone() tells the watchers
			}
		case <-t.d.Closed():
			return
		}
		for t.deliverNew() {
		}
	}
}

// deliverNew reports whether there is more. After an error the next poll tries again; one
// that lasts reaches everybody by their snapshots.
func (t *logTailer) deliverNew() (more bool) {
	t.mu.Lock()
	from, idle := t.position, len(t.watchers) == 0
	t.mu.Unlock()
	if idle {
		return false
	}
	s, err := t.d.readLog(context.Background(), from, anyKey)
	if err != nil {
		return false
	}
	t.deliverSegment(from, s)
	return s.more
}

// The segment has all keys, not only those that concerned the watchers when it was read:
// others may have been added since.
func (t *logTailer) deliverSegment(from int64, s logSegment) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.position != from {
		return // all watchers left meanwhile, and others were added
	}
	if s.trimmed > from {
		for w := range t.watchers {
			t.detachLocked(w, from)
		}
		return
	}
	for _, b := range s.batches {
		for w, part := range t.index.SplitBatch(b) {
			if b.Revision > w.joinedAt && !w.push(part) {
				t.detachLocked(w, b.Revision-1)
			}
		}
	}
	t.position = s.end
}

func anyKey(string) bool { return true }

// addWatcher adds a watcher that has read up to position by itself. It reports false if the
// tailer is farther already: then the watcher has to read on.
func (t *logTailer) addWatcher(w *watcher, position int64) bool {
	t.d.doorbell.listen(t.wakeUp)
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Context().Err() != nil {
		return false // it was closed beside its Next, and is removed already
	}
	if len(t.watchers) == 0 {
		t.position = position
	}
	if t.position > position {
		return false
	}
	w.setLive(position)
	t.watchers[w] = true
	t.index.Add(w, w.Prefixes)
	t.wakeUp() // there may have been a commit since it read
	return true
}

func (t *logTailer) removeWatcher(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers[w] {
		t.detachLocked(w, 0)
	}
}

// detachLocked has the watcher read for itself again, from position on.
func (t *logTailer) detachLocked(w *watcher, position int64) {
	delete(t.watchers, w)
	t.index.Remove(w, w.Prefixes)
	w.setBehind(position)
}
