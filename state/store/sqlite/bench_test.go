package sqlite_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/sqlite"
)

// BenchmarkOpen measures the steps of a short process beside a running one: open, one read, close.
func BenchmarkOpen(b *testing.B) {
	path := newStorePath(b)
	put(b, openWith(b, path, sqlite.Options{}), "a", "1")
	var opened time.Duration
	for b.Loop() {
		began := time.Now()
		s, err := sqlite.Open(b.Context(), path)
		check(b, err)
		opened += time.Since(began)
		get(b, s, "a")
		check(b, s.Close())
	}
	b.ReportMetric(float64(opened.Microseconds())/float64(b.N), "µs/open-alone")
}

// BenchmarkOpenAlone measures the same while no other process has the file open: Close then writes the
// log back.
func BenchmarkOpenAlone(b *testing.B) {
	path := newStorePath(b)
	for b.Loop() {
		s, err := sqlite.Open(b.Context(), path)
		check(b, err)
		put(b, s, "a", "1")
		check(b, s.Close())
	}
}

// BenchmarkCommit measures the latency of one goroutine.
func BenchmarkCommit(b *testing.B) {
	s := openWith(b, newStorePath(b), sqlite.Options{})
	for b.Loop() {
		put(b, s, "a", "some value of the usual size, about a hundred bytes, as most of the settings and presence keys are")
	}
}

// BenchmarkCommitTogether measures the throughput of 64 goroutines.
func BenchmarkCommitTogether(b *testing.B) {
	s := openWith(b, newStorePath(b), sqlite.Options{})
	b.SetParallelism(32)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			put(b, s, "a", "1")
		}
	})
}

// BenchmarkGet measures a snapshot with one read.
func BenchmarkGet(b *testing.B) {
	s := openWith(b, newStorePath(b), sqlite.Options{})
	put(b, s, "a", "1")
	for b.Loop() {
		get(b, s, "a")
	}
}

// BenchmarkList measures a list of 10,000 keys.
func BenchmarkList(b *testing.B) {
	s := openWith(b, newStorePath(b), sqlite.Options{})
	for i := 0; i < 10_000; i += 100 {
		var ops []store.Op
		for j := range 100 {
			ops = append(ops, store.Op{Key: fmt.Sprintf("units/service/%06d", i+j), Value: make([]byte, 300)})
		}
		_, err := s.Commit(b.Context(), store.Txn{Ops: ops})
		check(b, err)
	}
	for b.Loop() {
		snap, err := s.Snapshot(b.Context())
		check(b, err)
		kvs, err := snap.List(b.Context(), "units/")
		check(b, err)
		if len(kvs) != 10_000 {
			b.Fatal(len(kvs))
		}
		snap.Close()
	}
}

// BenchmarkDelivery measures a round trip: a commit in this process, its delivery to another process, the
// commit of the other process, and its delivery to this one. BenchmarkCommit measures only the commits.
func BenchmarkDelivery(b *testing.B) {
	path := newStorePath(b)
	s := openWith(b, path, sqlite.Options{})
	start(b, "answer", path).line(b)
	w := watch(b, s, "pong")
	for b.Loop() {
		put(b, s, "ping", "")
		next(b, w)
	}
}

// BenchmarkManyWatchers measures the time until one of 500 live watchers gets a commit.
func BenchmarkManyWatchers(b *testing.B) {
	s := openWith(b, newStorePath(b), sqlite.Options{})
	got := make(chan bool)
	var all sync.WaitGroup
	for i := range 500 {
		w := watch(b, s, fmt.Sprintf("u/%d/", i))
		all.Go(func() {
			for {
				if _, err := w.Next(b.Context()); err != nil {
					return
				}
				got <- true
			}
		})
		put(b, s, fmt.Sprintf("u/%d/x", i), "")
		<-got
	}
	i := 0
	for b.Loop() {
		i++
		put(b, s, fmt.Sprintf("u/%d/x", i%500), "")
		<-got
	}
	check(b, s.Close())
	all.Wait()
}
