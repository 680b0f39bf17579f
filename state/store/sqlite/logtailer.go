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

// logTailer reads every commit in the change log once for all watchers of this handle, and
// gives it to those that it concerns.
//
// Watchers are added when the tailer remembers what they have not read, or they have read up to
// its position by themselves, and detached when they do not keep up; then they read for
// themselves again, so that a slow one neither blocks others nor misses anything.
type logTailer struct {
	d       *db
	wakeup  chan struct{} // buffered: one is enough, however many commits there are
	touched chan struct{} // the store's files were; buffered likewise

	mu       sync.Mutex
	position int64 // every commit up to here was delivered; means nothing without watchers
	recent   []store.Batch
	from     int64 // recent has every commit after this one
	watchers map[*watcher]bool
	index    handle.WatcherIndex[*watcher]
}

func newLogTailer(d *db) *logTailer {
	return &logTailer{
		d:        d,
		wakeup:   make(chan struct{}, 1),
		touched:  make(chan struct{}, 1),
		watchers: map[*watcher]bool{},
		index:    handle.WatcherIndex[*watcher]{},
	}
}

func (t *logTailer) wakeUp()   { signal(t.wakeup) }
func (t *logTailer) lookSoon() { signal(t.touched) }

// signal leaves one signal in the channel, whose buffer has room for one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// lookPause is between the first write to the store's file and a look at it: a checkpoint writes
// it many times.
const lookPause = 2 * time.Millisecond

// run delivers new commits to the watchers until the store is closed or gone. It looks when a commit of
// this process wakes it, shortly after the files were touched, and at every poll.
func (t *logTailer) run() {
	poll := time.NewTicker(t.d.options.PollInterval)
	defer poll.Stop()
	var look <-chan time.Time // nil unless the files were touched

	for {
		select {
		case <-t.wakeup:
		case <-t.touched:
			if look == nil {
				look = time.After(lookPause)
			}
			continue
		case <-look:
			look = nil
			if t.d.checkContent(t.d.Context()) != nil {
				return
			}
		case <-poll.C:
			if t.d.checkContent(t.d.Context()) != nil {
				return // d.Gone() tells the watchers
			}
		case <-t.d.Context().Done():
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

// deliverSegment delivers the segment to the watchers. The segment has all keys, since watchers may have
// been added after it was read.
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
	t.recent = append(t.recent, s.batches...)
	if n := len(t.recent) - maxRecentBatches; n > 0 {
		t.from = t.recent[n-1].Revision
		t.recent = t.recent[n:]
	}
}

func anyKey(string) bool { return true }

// addWatcher adds a watcher that has all changes up to position. atEnd says that the watcher has just read
// the log to its end. It returns false if the tailer no longer holds the changes after position; then the
// watcher must read on from the log.
func (t *logTailer) addWatcher(w *watcher, position int64, atEnd bool) bool {
	t.d.doorbell.listen(t.wakeUp, t.lookSoon, t.d.file.path, t.d.guard.shmPath)
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.Context().Err() != nil {
		return false // it was closed beside its Next, and is removed already
	}

	if len(t.watchers) == 0 {
		if !atEnd {
			return false
		}
		t.position = position
		t.recent = nil
		t.from = position
	}
	if position < t.from {
		return false
	}

	missed, _ := slices.BinarySearchFunc(t.recent, position+
		1, func(b store.Batch, revision int64) int { return cmp.Compare(b.Revision, revision) })
	w.setLive(max(position, t.position), t.recent[missed:])
	t.watchers[w] = true
	t.index.Add(w, w.Spans)
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

// detachLocked makes the watcher read the log itself again, from position on.
func (t *logTailer) detachLocked(w *watcher, position int64) {
	delete(t.watchers, w)
	t.index.Remove(w, w.Spans)
	w.mu.Lock()
	w.live = false
	w.position = position
	w.Wake()
	w.mu.Unlock()
}
