package etcd_test

import (
	"fmt"
	"runtime"
	"sync"
	"testing"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
)

// clusterOptions returns the options of the clusters that the benchmarks measure.
func clusterOptions() map[string]etcdtest.Options {
	return map[string]etcdtest.Options{
		"one": {Sync: true}, "three": {Members: 3, Sync: true}, "one-nosync": {}, "three-nosync": {Members: 3},
	}
}

func benchEachCluster(b *testing.B, run func(b *testing.B, s store.Store)) {
	for name, o := range clusterOptions() {
		b.Run(name, func(b *testing.B) {
			s := newStore(b, etcdtest.For(b, o))
			defer s.Close()
			run(b, s)
		})
	}
}

// BenchmarkCommit measures one put that is conditional on its key.
func BenchmarkCommit(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		value, last := make([]byte, 300), int64(0)
		for b.Loop() {
			last = commit(b, s, store.Txn{
				Conds: []store.Cond{{Key: "units/mysql/0", Revision: last}},
				Ops:   []store.Op{{Key: "units/mysql/0", Value: value}},
			})
		}
	})
}

// BenchmarkCommitPrefix lists 100 keys and adds one, conditional on the list.
func BenchmarkCommitPrefix(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		for i := range 100 {
			put(b, s, fmt.Sprintf("units/mysql/%d", i))
		}
		for b.Loop() {
			snap, err := s.Snapshot(b.Context())
			check(b, err)
			_, err = snap.List(b.Context(), "units/mysql/")
			check(b, err)
			r, err := snap.Revision(b.Context())
			check(b, err)
			commit(b, s, store.Txn{
				Conds: []store.Cond{{Prefix: "units/mysql/", Revision: r}},
				Ops:   []store.Op{{Key: "units/mysql/50"}},
			})
		}
	})
}

// BenchmarkCommitParallel measures the time of each commit while 32 goroutines commit in parallel.
func BenchmarkCommitParallel(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		var group sync.WaitGroup
		work := make(chan int)
		for range 32 {
			group.Go(func() {
				for i := range work {
					put(b, s, fmt.Sprintf("k/%d", i%1000))
				}
			})
		}
		for i := 0; b.Loop(); i++ {
			work <- i
		}
		close(work)
		group.Wait()
	})
}

// BenchmarkGet measures a snapshot with one read.
func BenchmarkGet(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		put(b, s, "k")
		for b.Loop() {
			snap, err := s.Snapshot(b.Context())
			check(b, err)
			_, _, err = snap.Get(b.Context(), "k")
			check(b, err)
			snap.Close()
		}
	})
}

// BenchmarkWake measures the time from the start of a commit until a watcher of another handle gets the
// commit. The watcher watches two prefixes, and there are 500 other watchers.
func BenchmarkWake(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		other := openAt(b, etcd.URL(s))
		defer other.Close()
		from := revision(b, s)
		before := heapSize()
		for i := range 500 {
			w, err := other.Watch(b.Context(), from, store.Below(fmt.Sprintf("u/%d/", i), fmt.Sprintf("r/%d/", i)))
			check(b, err)
			defer w.Close()
		}
		w, err := other.Watch(b.Context(), from, store.Below("a/", "b/"))
		check(b, err)
		defer w.Close()
		put(b, s, "a/first")
		_, err = w.Next(b.Context())
		check(b, err)
		each := float64(heapSize()-before) / 500
		for b.Loop() {
			put(b, s, "a/k", "b/k")
			_, err := w.Next(b.Context())
			check(b, err)
		}
		b.ReportMetric(each, "B/watcher")
	})
}

func heapSize() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// BenchmarkWatchPast measures the time from a snapshot until a watcher that is opened after it gets a commit
// from about the time of the snapshot. Etcd sends past events only every tenth of a second.
func BenchmarkWatchPast(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		for b.Loop() {
			from := revision(b, s)
			put(b, s, "elsewhere")
			w, err := s.Watch(b.Context(), from, store.Below("a/", "b/"))
			check(b, err)
			put(b, s, "a/k")
			_, err = w.Next(b.Context())
			check(b, err)
			w.Close()
		}
	})
}

// BenchmarkList10000 reads ten thousand keys of 300 bytes.
func BenchmarkList10000(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		value := make([]byte, 300)
		for i := range 100 {
			var txn store.Txn
			for j := range 100 {
				txn.Ops = append(txn.Ops, store.Op{Key: fmt.Sprintf("units/%d/%d", i, j), Value: value})
			}
			commit(b, s, txn)
		}
		for b.Loop() {
			if n := len(list(b, s, "units/")); n != 10000 {
				b.Fatalf("%d keys", n)
			}
		}
	})
}

// BenchmarkOpen measures the steps of a command: open, one read, close.
func BenchmarkOpen(b *testing.B) {
	benchEachCluster(b, func(b *testing.B, s store.Store) {
		url := etcd.URL(s)
		for b.Loop() {
			s := openAt(b, url)
			revision(b, s)
			check(b, s.Close())
		}
	})
}
