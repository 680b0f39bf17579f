package storetest

import (
	"fmt"
	"slices"
	"sync"
	"testing"

	"bijou/state/store"
)

var streamCases = []testCase{
	{"a watcher that is slow misses nothing", slowWatcher},
	{"watchers under concurrent writers lose, double and reorder nothing", concurrentWriters},
	{"watchers opened in mid-stream lose nothing", midStream},
	{"a watcher that catches up while its commit happens is told", ownKeys},
}

// writers commits n times from each handle in parallel and returns all revisions, sorted. Each commit
// writes its own key and a common one.
func (f *fixture) writers(n int, handles ...handle) []int64 {
	var mu sync.Mutex
	var revisions []int64
	var all sync.WaitGroup
	for i, h := range handles {
		all.Go(func() {
			for j := range n {
				revision, err := h.s.Commit(h.ctx, store.Txn{Ops: []store.Op{
					put("w/common", fmt.Sprint(j)), put(fmt.Sprintf("w/writer-%d", i), fmt.Sprint(j)),
				}})
				if err != nil {
					f.Error(err)
					return
				}
				mu.Lock()
				revisions = append(revisions, revision)
				mu.Unlock()
			}
		})
	}
	all.Wait()
	slices.Sort(revisions)
	return revisions
}

// scale returns a smaller number with -short, because of the race detector.
func scale(n int) int {
	if testing.Short() {
		return n / 10
	}
	return n
}

// delivers reads the watcher's next batches. They must have exactly these revisions, and each must be complete.
func (h handle) delivers(w store.Watcher, revisions []int64) {
	h.Helper()
	for i, want := range revisions {
		b := h.next(w)
		if b.Revision != want || len(b.Events) != 2 {
			h.Fatalf("batch %d of %d: got %v, want revision %d with 2 events", i, len(revisions), b, want)
		}
	}
}

func slowWatcher(f *fixture) {
	other := f.share()
	here, there := f.watch(f.revision(), "w/"), other.watch(f.revision(), "w/")
	revisions := f.writers(scale(800), f.handle, f.handle, other)
	f.delivers(here, revisions)
	other.delivers(there, revisions)
	f.sees(here, f.write(put("w/end", "1")), "w/end")
}

func concurrentWriters(f *fixture) {
	other := f.share()
	var watchers []store.Watcher
	for range 5 {
		watchers = append(watchers, f.watch(f.revision(), "w/"), other.watch(f.revision(), "w/common", "w/writer"))
	}
	got := make([][]store.Batch, len(watchers))
	var all sync.WaitGroup
	for i, w := range watchers {
		all.Go(func() { got[i] = f.untilEnd(w) })
	}
	revisions := f.writers(scale(300), f.handle, f.handle, other, other)
	f.write(put("w/common", "end"))
	all.Wait()
	for i := range got {
		f.equal(revisionsOf(got[i]), revisions)
	}
}

// midStream opens watchers at the revisions of snapshots while others write. A watcher must return
// everything that its snapshot does not show.
func midStream(f *fixture) {
	other := f.share()
	type reader struct {
		from int64
		got  []store.Batch
	}
	readers := make([]reader, 8)
	var all, open sync.WaitGroup
	open.Add(len(readers))
	for i := range readers {
		all.Go(func() {
			opened := sync.OnceFunc(open.Done)
			defer opened()
			snap, err := []handle{f.handle, other}[i%2].s.Snapshot(f.ctx)
			if err != nil {
				f.Error(err)
				return
			}
			defer snap.Close()
			readers[i].from, _ = snap.Revision(f.ctx)
			w, err := f.s.Watch(f.ctx, readers[i].from, store.Below("w/"))
			if err != nil {
				f.Error(err)
				return
			}
			defer w.Close()
			opened()
			readers[i].got = f.untilEnd(w)
		})
	}
	revisions := f.writers(scale(200), f.handle, other)
	open.Wait()
	f.write(put("w/common", "end"))
	all.Wait()
	for _, r := range readers {
		want := slices.DeleteFunc(slices.Clone(revisions), func(n int64) bool { return n <= r.from })
		f.equal(revisionsOf(r.got), want)
	}
}

// ownKeys opens one watcher after the other while the earlier watchers remain open. Each watcher reads the
// whole history for its own key while the key is being written.
func ownKeys(f *fixture) {
	got := make(chan error)
	for i := range scale(500) {
		key := fmt.Sprintf("own/%d", i)
		w := f.watch(0, key)
		go func() {
			_, err := w.Next(f.ctx)
			got <- err
		}()
		f.write(put(key, "1"))
		f.ok(<-got)
		go w.Next(f.ctx)
	}
}

// untilEnd collects batches up to the one with a single event, which it drops.
func (f *fixture) untilEnd(w store.Watcher) []store.Batch {
	var got []store.Batch
	for {
		b, err := w.Next(f.ctx)
		if err != nil {
			f.Error(err)
			return got
		}
		if len(b.Events) == 1 {
			return got
		}
		got = append(got, b)
	}
}

func revisionsOf(batches []store.Batch) []int64 {
	revisions := []int64{}
	for _, b := range batches {
		revisions = append(revisions, b.Revision)
	}
	return revisions
}
