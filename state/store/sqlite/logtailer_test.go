package sqlite

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/handle"
	"bijou/testscripts/kit/need"
)

// newTestTailer returns a tailer with a watcher of "a" that joined at revision 5.
func newTestTailer(t *testing.T) (*logTailer, *watcher) {
	tailer := newLogTailer(&db{guard: &guard{}, doorbell: newDoorbell(t.TempDir() + "/store")})
	t.Cleanup(tailer.d.doorbell.close)
	w := newTestWatcher("a")
	if !tailer.addWatcher(w, 5, readToItsEnd) {
		t.Fatal("the first watcher cannot join")
	}
	return tailer, w
}

func newTestWatcher(prefixes ...string) *watcher {
	return &watcher{Watch: handle.New().NewWatch(store.Below(prefixes...))}
}

func newBatch(revision int64, keys ...string) store.Batch {
	b := store.Batch{Revision: revision}
	for _, key := range keys {
		b.Events = append(b.Events, store.Event{Key: key})
	}
	return b
}

// TestJoinWhileRead checks a watcher that joins between the tailer's read and its delivery. It must get all
// events that it has not read itself, and no event twice.
func TestJoinWhileRead(t *testing.T) {
	need.Whole(t)
	tailer, first := newTestTailer(t)
	read := logSegment{end: 7, batches: []store.Batch{newBatch(6, "a", "b"), newBatch(7, "b/x", "c")}}
	earlier, later, twice := newTestWatcher("b"), newTestWatcher("b"), newTestWatcher("b", "b/", "c")
	tailer.addWatcher(earlier, 5, readToItsEnd)
	tailer.addWatcher(later, 6, readToItsEnd)
	tailer.addWatcher(twice, 6, readToItsEnd)
	tailer.deliverSegment(5, read)
	for _, c := range []struct {
		w    *watcher
		want []store.Batch
	}{
		{first, []store.Batch{newBatch(6, "a")}},
		{earlier, []store.Batch{newBatch(6, "b"), newBatch(7, "b/x")}},
		{later, []store.Batch{newBatch(7, "b/x")}},
		{twice, []store.Batch{newBatch(7, "b/x", "c")}},
	} {
		if diff := cmp.Diff(c.want, c.w.queue); diff != "" {
			t.Errorf("watcher of %v: %s", c.w.Spans, diff)
		}
	}
}

// TestJoinBehind checks that a watcher that is behind gets the batches that the tailer remembers, if these
// are all that it has missed.
func TestJoinBehind(t *testing.T) {
	need.Whole(t)
	tailer, _ := newTestTailer(t)
	tailer.deliverSegment(5, logSegment{end: 8, batches: []store.Batch{newBatch(6, "b"), newBatch(7, "b", "c"), newBatch(8, "c")}})
	behind := newTestWatcher("c")
	if !tailer.addWatcher(behind, 6, logNotRead) {
		t.Error("a watcher that lacks what is remembered cannot join")
	}
	tailer.deliverSegment(8, logSegment{end: 9, batches: []store.Batch{newBatch(9, "c")}})
	if diff := cmp.Diff([]store.Batch{newBatch(7, "c"), newBatch(8, "c"), newBatch(9, "c")}, behind.queue); diff != "" {
		t.Error(diff)
	}
	if tailer.addWatcher(newTestWatcher("d"), 4, readToItsEnd) {
		t.Error("a watcher joined that lacks more than the tailer remembers")
	}
	for n := range int64(maxRecentBatches) {
		tailer.deliverSegment(9+n, logSegment{end: 10 + n, batches: []store.Batch{newBatch(10+n, "e")}})
	}
	if len(tailer.recent) != maxRecentBatches || tailer.addWatcher(newTestWatcher("d"), 8, readToItsEnd) || !tailer.addWatcher(newTestWatcher("d"), 9, readToItsEnd) {
		t.Errorf("%d commits are remembered, after %d", len(tailer.recent), tailer.beforeRecent)
	}
}

// TestSlowWatcherIsDropped checks that a slow watcher's queue has no gap up to its position, and that other
// watchers still get events.
func TestSlowWatcherIsDropped(t *testing.T) {
	need.Whole(t)
	tailer, slow := newTestTailer(t)
	quick := newTestWatcher("z")
	tailer.addWatcher(quick, 5, readToItsEnd)
	read := logSegment{end: 5}
	for range maxQueuedBatches + 10 {
		read.end++
		read.batches = append(read.batches, newBatch(read.end, "a"))
	}
	tailer.deliverSegment(5, read)
	tailer.deliverSegment(read.end, logSegment{end: read.end + 1, batches: []store.Batch{newBatch(read.end+1, "z")}})
	got := fmt.Sprint(slow.live, len(slow.queue), slow.position, slow.queue[maxQueuedBatches-1].Revision, len(tailer.index[handle.Span{Text: "a", Prefix: true}]))
	if want := fmt.Sprint(false, maxQueuedBatches, 5+maxQueuedBatches, 5+maxQueuedBatches, 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !quick.live || len(quick.queue) != 1 {
		t.Error("the other watcher was not told")
	}
}

// TestHubBehindTheLog checks that all watchers read the log themselves, and notice the loss, if the log was
// trimmed beyond the tailer's position.
func TestHubBehindTheLog(t *testing.T) {
	need.Whole(t)
	tailer, w := newTestTailer(t)
	tailer.deliverSegment(5, logSegment{end: 20, trimmed: 9})
	if w.live || w.position != 5 || len(tailer.watchers) != 0 {
		t.Errorf("live %v at %d", w.live, w.position)
	}
}
