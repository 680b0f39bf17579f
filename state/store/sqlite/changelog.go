package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"sync"
	"time"

	"bijou/state/store"
	"bijou/state/store/handle"
)

// prefixClause returns the SQL for keys that have the prefix, and its arguments. A prefix of 0xff
// bytes only has no end. (An empty blob would be bound as NULL; the smallest key is one zero byte.)
func prefixClause(prefix string) (clause string, args []any) {
	first := []byte(prefix)
	end := []byte(prefix)
	if prefix == "" {
		first = []byte{0}
	}

	for n := len(end); n > 0; n-- {
		if end[n-1] < 0xff {
			end = end[:n]
			end[n-1]++
			return "key >= ? AND key < ?", []any{first, end}
		}
	}

	return "key >= ?", []any{first}
}

// logSegment is a part of the change log: whole commits, without gap.
type logSegment struct {
	batches []store.Batch
	end     int64 // the last revision it covers
	more    bool  // the log went on after it when it was read
	trimmed int64 // up to where the log was trimmed
}

// logSQL has at least one row, with NULLs if nothing is logged after the
// revision. One statement, so that head and log are of one moment.
const logSQL = `SELECT h.revision, h.trimmed, l.rev, l.key, l.deleted
	FROM head h LEFT JOIN log l ON l.rev > ? WHERE h.id = 1 ORDER BY l.rev, l.key`

// maxReadCommits bounds one read of the log.
const maxReadCommits = 256

// readLog reads the commits after the revision, of the keys that are wanted.
func (d *db) readLog(ctx context.Context, after int64, wanted func(key string) bool) (s logSegment, err error) {
	c, err := d.readers.get(ctx)
	if err != nil {
		return logSegment{}, err
	}
	defer d.readers.put(c)
	var newest, last int64

	err = c.queryRows(logSQL, []any{after}, func(rows *sql.Rows) (bool, error) {
		var revision, deleted sql.NullInt64
		var key sql.RawBytes
		if err := rows.Scan(&newest, &s.trimmed, &revision, &key, &deleted); err != nil || !revision.Valid {
			return false, err
		}
		if revision.Int64 != last && len(s.batches) >= maxReadCommits {
			s.more, s.end = true, last
			return false, nil
		}

		last = revision.Int64
		if e := (store.Event{Key: string(key), Deleted: deleted.Int64 != 0}); wanted(e.Key) {
			s.addEvent(last, e)
		}
		return true, nil
	})

	if !s.more {
		s.end = max(newest, after)
	}
	return s, d.explain(err)
}

func (s *logSegment) addEvent(revision int64, e store.Event) {
	n := len(s.batches)
	if n == 0 || s.batches[n-1].Revision != revision {
		s.batches = append(s.batches, store.Batch{Revision: revision})
		n++
	}

	b := &s.batches[n-1]
	b.Events = append(b.Events, e)
}

// maxRecentBatches bounds what the tailer remembers: of as many commits a thousand units, which
// one change has woken, may be behind.
const maxRecentBatches = 1024

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
		d: d, wakeup: make(chan struct{}, 1), touched: make(chan struct{}, 1),
		watchers: map[*watcher]bool{}, index: handle.WatcherIndex[*watcher]{},
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

	t.position, t.recent = s.end, append(t.recent, s.batches...)
	if n := len(t.recent) - maxRecentBatches; n > 0 {
		t.from, t.recent = t.recent[n-1].Revision, t.recent[n:]
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

// detachLocked has the watcher read for itself again, from position on.
func (t *logTailer) detachLocked(w *watcher, position int64) {
	delete(t.watchers, w)
	t.index.Remove(w, w.Spans)
	w.mu.Lock()
	w.live, w.position = false, position
	w.Wake()
	w.mu.Unlock()
}
