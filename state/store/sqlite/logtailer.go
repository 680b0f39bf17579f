package sqlite

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// logTailer reads each commit in the change log once for all watchers of this handle, and passes it to the
// watchers of its keys.
//
// A watcher is added once it has read the log up to the commits that the tailer remembers. The tailer
// detaches a watcher that does not keep up. A detached watcher reads the log itself, so that it does not
// block other watchers and still misses nothing.
type logTailer struct {
	d       *db
	wakeup  chan struct{} // signalled after a commit; one buffered signal is enough for any number of commits
	touched chan struct{} // signalled after a change of the store's files; buffered likewise

	mu           sync.Mutex
	position     int64         // the last commit that was delivered; meaningless without watchers
	recent       []store.Batch // the last commits that were delivered
	beforeRecent int64         // the commit before the first in recent
	watchers     map[*watcher]bool
	index        handle.WatcherIndex[*watcher]
}

// newLogTailer returns a tailer without watchers. The caller must start run.
func newLogTailer(d *db) *logTailer {
	return &logTailer{
		d:        d,
		wakeup:   make(chan struct{}, 1),
		touched:  make(chan struct{}, 1),
		watchers: map[*watcher]bool{},
		index:    handle.WatcherIndex[*watcher]{},
	}
}

// wakeUp makes run read the log.
func (t *logTailer) wakeUp() { signal(t.wakeup) }

// checkSoon makes run check the store's files after checkPause.
func (t *logTailer) checkSoon() { signal(t.touched) }

// signal puts a signal into the channel, unless its buffer, which holds one, is full.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// checkPause is the time between the first write to the store's file and the tailer's check of the file. A
// checkpoint writes the file many times, and one check after these writes is enough.
const checkPause = 2 * time.Millisecond

// run delivers new commits to the watchers until the store is closed, or a check finds that it is gone. It reads
// the log after each ring or commit, shortly after the files were touched, and at every poll. In the last two
// cases it first checks the store's content.
func (t *logTailer) run() {
	poll := time.NewTicker(t.d.options.PollInterval)
	defer poll.Stop()
	var checkIsDue <-chan time.Time // nil unless the files were touched

	for {
		select {
		case <-t.wakeup:
		case <-t.touched:
			if checkIsDue == nil {
				checkIsDue = time.After(checkPause)
			}
			continue
		case <-checkIsDue:
			checkIsDue = nil
			if t.d.checkContent(t.d.Context()) != nil {
				// The store is gone. The watchers notice this by d.Gone().
				return
			}
		case <-poll.C:
			if t.d.checkContent(t.d.Context()) != nil {
				return
			}
		case <-t.d.Context().Done():
			return
		}

		// Each call delivers one segment, until none is left.
		for t.deliverNew() {
		}
	}
}

// deliverNew delivers the next segment of the log to the watchers, and reports whether the log has more. If
// there are no watchers, it reads nothing and returns false. It ignores an error, since the next poll tries
// again, and users of the store see a lasting error in their snapshots.
func (t *logTailer) deliverNew() (more bool) {
	t.mu.Lock()
	from := t.position
	idle := len(t.watchers) == 0
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

// deliverSegment delivers the segment, which was read after the position from, to the watchers. The segment
// has all keys, since watchers may have been added after it was read.
func (t *logTailer) deliverSegment(from int64, s logSegment) {
	t.mu.Lock()
	defer t.mu.Unlock()

	if t.position != from {
		// All watchers were removed in the meantime, and others were added at a different position.
		return
	}
	if s.trimmed > from {
		// The segment has a gap. The watchers notice this when they read the log themselves.
		for w := range t.watchers {
			t.detachLocked(w, from)
		}
		return
	}

	for _, b := range s.batches {
		for w, part := range t.index.SplitBatch(b) {
			// Batches up to joinedAt were queued when the watcher joined. If the queue is full, the watcher reads
			// this batch and all later ones from the log itself.
			if b.Revision > w.joinedAt && !w.push(part) {
				t.detachLocked(w, b.Revision-1)
			}
		}
	}

	t.position = s.end
	t.recent = append(t.recent, s.batches...)
	if excess := len(t.recent) - maxRecentBatches; excess > 0 {
		t.beforeRecent = t.recent[excess-1].Revision
		t.recent = t.recent[excess:]
	}
}

// anyKey is a filter for readLog that wants all keys.
func anyKey(string) bool { return true }

// logReading says how far a watcher has read the log by itself.
type logReading int

const (
	logNotRead   logReading = iota // the watcher has not read the log, or not to its end
	readToItsEnd                   // the watcher has just read the log to its end
)

// addWatcher adds a watcher that has all changes up to position. It adds nothing and returns false if the
// tailer does not have the changes after position, if the tailer has no watchers and this one has not read the
// log to its end, or if the watcher is closed. An open watcher must then continue to read the log.
func (t *logTailer) addWatcher(w *watcher, position int64, read logReading) bool {
	// Listen from the first watcher on. Later calls do nothing, unless the earlier ones have failed.
	t.d.doorbell.listen(t.wakeUp, t.checkSoon, t.d.file.path, t.d.guard.shmPath)
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Context().Err() != nil {
		// The watcher was closed during its Next, and has already been removed.
		return false
	}

	if len(t.watchers) == 0 {
		// The tailer starts at the position of its first watcher, and must not begin with old commits.
		if read != readToItsEnd {
			return false
		}
		t.position = position
		t.recent = nil
		t.beforeRecent = position
	}
	if position < t.beforeRecent {
		return false
	}

	// Queue the batches after position that the tailer has already delivered to the other watchers.
	byRevision := func(b store.Batch, revision int64) int { return cmp.Compare(b.Revision, revision) }
	firstMissed, _ := slices.BinarySearchFunc(t.recent, position+1, byRevision)
	w.setLive(max(position, t.position), t.recent[firstMissed:])
	t.watchers[w] = true
	t.index.Add(w, w.Spans)
	// There may have been a commit since the watcher read the log.
	t.wakeUp()
	return true
}

// removeWatcher removes a closed watcher, unless it was detached.
func (t *logTailer) removeWatcher(w *watcher) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.watchers[w] {
		// The watcher is closed, so its position no longer matters.
		t.detachLocked(w, 0)
	}
}

// detachLocked removes the watcher, which then reads the log itself from the given position. The caller holds
// t.mu.
func (t *logTailer) detachLocked(w *watcher, position int64) {
	delete(t.watchers, w)
	t.index.Remove(w, w.Spans)
	w.mu.Lock()
	w.live = false
	w.position = position
	w.Wake()
	w.mu.Unlock()
}
