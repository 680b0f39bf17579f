package sqlite

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/opener"
)

// testHub has a watcher of "a" that joined at revision 5.
func testHub(t *testing.T) (*logTailer, *watcher) {
	h := newLogTailer(&db{doorbell: newDoorbell(t.TempDir() + "/store")})
	t.Cleanup(h.d.doorbell.close)
	w := testWatcher("a")
	if !h.addWatcher(w, 5) {
		t.Fatal("the first watcher cannot join")
	}
	return h, w
}

func testWatcher(prefixes ...string) *watcher {
	return &watcher{Watch: opener.New().NewWatch(prefixes)}
}

func batch(revision int64, keys ...string) store.Batch {
	b := store.Batch{Revision: revision}
	for _, key := range keys {
		b.Events = append(b.Events, store.Event{Key: key})
	}
	return b
}

// TestJoinWhileRead: a watcher that joins between the hub's read and its
// handing out gets what it has not read itself, and nothing twice.
func TestJoinWhileRead(t *testing.T) {
	h, first := testHub(t)
	read := logSegment{end: 7, batches: []store.Batch{batch(6, "a", "b"), batch(7, "b/x", "c")}}
	earlier, later, twice := testWatcher("b"), testWatcher("b"), testWatcher("b", "b/", "c")
	h.addWatcher(earlier, 5)
	h.addWatcher(later, 6)
	h.addWatcher(twice, 6)
	h.deliverSegment(5, read)
	for _, c := range []struct {
		w    *watcher
		want []store.Batch
	}{
		{first, []store.Batch{batch(6, "a")}},
		{earlier, []store.Batch{batch(6, "b"), batch(7, "b/x")}},
		{later, []store.Batch{batch(7, "b/x")}},
		{twice, []store.Batch{batch(7, "b/x", "c")}},
	} {
		if diff := cmp.Diff(c.want, c.w.queue); diff != "" {
			t.Errorf("watcher of %q: %s", c.w.Prefixes, diff)
		}
	}
	if h.addWatcher(testWatcher("d"), 6) {
		t.Error("a watcher joined at a revision that the hub has passed")
	}
}

// TestSlowWatcherIsDropped: its queue stays without gap up to its position, and
// the others go on.
func TestSlowWatcherIsDropped(t *testing.T) {
	h, slow := testHub(t)
	quick := testWatcher("z")
	h.addWatcher(quick, 5)
	read := logSegment{end: 5}
	for range maxQueuedBatches + 10 {
		read.end++
		read.batches = append(read.batches, batch(read.end, "a"))
	}
	h.deliverSegment(5, read)
	h.deliverSegment(read.end, logSegment{end: read.end + 1, batches: []store.Batch{batch(read.end+1, "z")}})
	got := fmt.Sprint(slow.live, len(slow.queue), slow.position, slow.queue[maxQueuedBatches-1].Revision, len(h.index["a"]))
	if want := fmt.Sprint(false, maxQueuedBatches, 5+maxQueuedBatches, 5+maxQueuedBatches, 0); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if !quick.live || len(quick.queue) != 1 {
		t.Error("the other watcher was not told")
	}
}

// TestHubBehindTheLog: if the log was trimmed beyond the hub, everybody reads
// for himself, and finds out.
func TestHubBehindTheLog(t *testing.T) {
	h, w := testHub(t)
	h.deliverSegment(5, logSegment{end: 20, trimmed: 9})
	if w.live || w.position != 5 || len(h.watchers) != 0 {
		t.Errorf("live %v at %d", w.live, w.position)
	}
}
