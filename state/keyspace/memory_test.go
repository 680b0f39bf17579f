package keyspace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/fakes/memstore"
)

// countedReads is a store that counts the reads of single keys. A test can make these reads fail as if the
// store were away.
type countedReads struct {
	store.Store
	reads int
	away  bool
}

type countedRead struct {
	store.Snapshot
	of *countedReads
}

func (s *countedReads) Snapshot(ctx context.Context) (store.Snapshot, error) {
	snap, err := s.Store.Snapshot(ctx)
	return &countedRead{snap, s}, err
}

func (s *countedRead) Get(ctx context.Context, key string) (store.KV, bool, error) {
	if s.of.reads++; s.of.away {
		return store.KV{}, false, store.ErrAway
	}
	return s.Snapshot.Get(ctx, key)
}

func (s *countedRead) Prefetch(ctx context.Context, next store.Scope) error {
	s.of.reads += len(next.Keys)
	return s.Snapshot.Prefetch(ctx, next)
}

// TestOwnKeysAreReadOnce checks that a process does not read its own keys again after its updates have read
// or written them. No update may depend on outdated values, even if another process changes the keys.
func TestOwnKeysAreReadOnce(t *testing.T) {
	errGone := errors.New("it is gone")
	var seen []int // the value that each run of an update has seen
	read := func(tx *Tx) (int, error) {
		n, ok, err := Load[int](tx, "own/n")
		if seen = append(seen, n); !ok && err == nil {
			err = errGone
		}
		return n, err
	}
	increase := func(tx *Tx) error {
		n, err := read(tx)
		return errors.Join(err, tx.Put("own/n", n+1))
	}
	compare := func(tx *Tx) error { // compares the values with those in the list
		n, err := read(tx)
		kvs, errList := tx.List("own/")
		return errors.Join(err, errList, tx.Put("equal", len(kvs) == 1 && string(kvs[0].Value) == strconv.Itoa(n)))
	}
	put := func(n int) func(tx *Tx) error { return func(tx *Tx) error { return tx.Put("own/n", n) } }

	st := &countedReads{Store: memstore.New()}
	own := New(st, func(key string) bool { return strings.HasPrefix(key, "own/") })
	defer own.Close()
	other := New(memstore.Share(st.Store), nil)
	defer other.Close()
	if err := other.Update(t.Context(), put(1)); err != nil {
		t.Fatal(err)
	}
	for _, step := range []struct {
		name   string
		before func(tx *Tx) error // the other process's update; nil for none
		update func(tx *Tx) error
		err    error
		reads  int
		seen   []int
	}{
		{"nothing is known", nil, increase, nil, 1, []int{1}},
		{"what was written", nil, increase, nil, 0, []int{2}},
		{"written elsewhere", put(5), increase, nil, 1, []int{3, 5}},
		{"written elsewhere, and only looked at", put(7), func(tx *Tx) error { _, err := read(tx); return err }, nil, 1, []int{6, 7}},
		{"read again since", nil, increase, nil, 1, []int{7}},
		{"written elsewhere, and listed, too", put(9), compare, nil, 1, []int{8, 9}},
		{"what was read", nil, increase, nil, 0, []int{9}},
		{"removed elsewhere", func(tx *Tx) error { tx.Remove("own/n"); return nil }, increase, errGone, 1, []int{10, 0}},
		{"put there again", put(3), increase, nil, 1, []int{3}},
		{"removed here", nil, func(tx *Tx) error { tx.Remove("own/n"); return nil }, nil, 0, nil},
		{"gone", nil, increase, errGone, 1, []int{0}},
	} {
		if step.before != nil {
			if err := other.Update(t.Context(), step.before); err != nil {
				t.Fatal(err)
			}
		}
		st.reads, seen = 0, nil
		if err := own.Update(t.Context(), step.update); !errors.Is(err, step.err) {
			t.Errorf("%s: got error %v, want %v", step.name, err, step.err)
		}
		if st.reads != step.reads || !slices.Equal(seen, step.seen) {
			t.Errorf("%s: %d reads, which saw %v; want %d, %v", step.name, st.reads, seen, step.reads, step.seen)
		}
	}
	equal, err := Read(t.Context(), own, func(v *View) (bool, error) { is, _, err := Load[bool](v, "equal"); return is, err })
	if !equal || err != nil {
		t.Errorf("an update was committed that has seen two values of one key: %v", err)
	}
}

// TestKeptKey checks that an update reads a key from a view that has kept it, but only once, and only while the key is
// unchanged.
func TestKeptKey(t *testing.T) {
	st := &countedReads{Store: memstore.New()}
	s := New(st, func(string) bool { return false })
	defer s.Close()
	other := New(memstore.Share(st.Store), nil)
	defer other.Close()
	put := func(n int) {
		t.Helper()
		if err := other.Update(t.Context(), func(tx *Tx) error { return tx.Put("n", n) }); err != nil {
			t.Fatal(err)
		}
	}
	keep := func() {
		t.Helper()
		if err := s.View(t.Context(), func(v *View) error { return v.Keep("n") }); err != nil {
			t.Fatal(err)
		}
	}
	double := func() (reads int) {
		t.Helper()
		st.reads = 0
		err := s.Update(t.Context(), func(tx *Tx) error {
			n, _, err := Load[int](tx, "n")
			return errors.Join(err, tx.Put("n", 2*n))
		})
		if err != nil {
			t.Fatal(err)
		}
		return st.reads
	}

	put(1)
	keep()
	if reads := double(); reads != 0 {
		t.Errorf("after Keep: %d reads, want 0", reads)
	}
	if reads := double(); reads != 1 {
		t.Errorf("of a key that the update itself has written: %d reads, want 1", reads)
	}

	keep()
	put(10)
	if reads := double(); reads != 1 {
		t.Errorf("of a key that has changed: %d reads, want 1", reads)
	}
	n, err := Read(t.Context(), s, func(v *View) (int, error) { n, _, err := Load[int](v, "n"); return n, err })
	if err != nil || n != 20 {
		t.Errorf("got %d, %v; want 20", n, err)
	}
}

// TestNoWriteRestsOnAFailedRead checks that nothing is committed after a failed read, even if the next
// read is answered from memory and the update ignores the error.
func TestNoWriteRestsOnAFailedRead(t *testing.T) {
	st := &countedReads{Store: memstore.New()}
	s := New(st, func(key string) bool { return key == "own" })
	defer s.Close()
	if err := s.Update(t.Context(), func(tx *Tx) error { return errors.Join(tx.Put("own", 1), tx.Put("a", 7)) }); err != nil {
		t.Fatal(err)
	}
	st.away = true
	err := s.Update(t.Context(), func(tx *Tx) error {
		// An update may read several keys and check only the last error. It still must not commit.
		a, _, _ := Load[int](tx, "a")
		_, _, err := Load[int](tx, "own")
		return errors.Join(err, tx.Put("b", a+1))
	})
	st.away = false
	written, errRead := Read(t.Context(), s, func(v *View) (bool, error) { return v.HasUnguarded("b") })
	if !errors.Is(err, ErrAway) || written || errRead != nil {
		t.Errorf("got error %v, written: %v; want %v, false", err, written, ErrAway)
	}
}

// TestTooLargeIsNoVerdictOnWhatWas checks that an update runs again with the current value if it is too large
// with a remembered value.
func TestTooLargeIsNoVerdictOnWhatWas(t *testing.T) {
	st := memstore.New()
	s := New(st, func(key string) bool { return key == "own" })
	defer s.Close()
	other := New(memstore.Share(st), nil)
	defer other.Close()
	for _, err := range []error{
		s.Update(t.Context(), func(tx *Tx) error { return tx.Put("own", strings.Repeat("x", 900<<10)) }),
		other.Update(t.Context(), func(tx *Tx) error { return tx.Put("own", "x") }),
		s.Update(t.Context(), func(tx *Tx) error {
			value, _, err := Load[string](tx, "own")
			return errors.Join(err, tx.Put("own", value+"y"), tx.Put("b", strings.Repeat("z", 200<<10)))
		}),
	} {
		if err != nil {
			t.Error(err)
		}
	}
}

// TestRememberedKeysAreBounded checks that a process that runs for a long time remembers only a limited
// number of the keys that it has written.
func TestRememberedKeysAreBounded(t *testing.T) {
	s := New(memstore.New(), func(string) bool { return true })
	defer s.Close()
	for i := range 2 * maxRemembered {
		b := &txBuffer{reads: map[string]store.KV{}, memory: s.memory.Load()}
		s.remember(b, []store.Op{{Key: strconv.Itoa(i)}}, int64(i+1))
	}
	n := 0
	s.memory.Load().kvs.Range(func(any, any) bool { n++; return true })
	if n > maxRemembered {
		t.Errorf("%d keys are remembered, want at most %d", n, maxRemembered)
	}
}

// TestRestoredEtcdIsReadAgain replaces an etcd with an older copy. Another process then writes a remembered
// key at the same revision at which this process had written it.
func TestRestoredEtcdIsReadAgain(t *testing.T) {
	etcdtest.Need(t)
	c := etcdtest.For(t, etcdtest.Options{Members: 1})
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	agent, err := Create(ctx, c.URL("/restored"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer agent.Close()
	agent.isOwn = func(string) bool { return true }
	operator, err := Open(ctx, c.URL("/restored"), "")
	if err != nil {
		t.Fatal(err)
	}
	defer operator.Close()
	w, err := agent.Watch(ctx, 0, Below(""))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	put := func(s *Space, n int) error {
		return s.Update(ctx, func(tx *Tx) error { return tx.Put("n", n) })
	}
	if err := errors.Join(put(agent, 1), c.Save(), put(agent, 2), c.Restore()); err != nil {
		t.Fatal(err)
	}
	for err == nil {
		_, err = w.Next(ctx)
	}
	if !errors.Is(err, ErrHistoryLost) {
		t.Fatal(err)
	}
	err = errors.Join(put(operator, 50), agent.Update(ctx, func(tx *Tx) error {
		n, _, err := Load[int](tx, "n")
		return errors.Join(err, tx.Put("n", n+1))
	}))
	n, errRead := Read(ctx, operator, func(v *View) (int, error) { n, _, err := Load[int](v, "n"); return n, err })
	if n != 51 || err != nil || errRead != nil {
		t.Errorf("got %d, %v, %v; want 51", n, err, errRead)
	}
}

// TestUpdatesFromMemory runs processes with and without remembered keys, which write, remove, list and check
// keys at the same time. The keys own/a and own/b together must always equal plain. No update may depend on
// older values than those that were committed before it.
func TestUpdatesFromMemory(t *testing.T) {
	base := memstore.New()
	errUnequal := errors.New("keys do not fit together")
	var committed atomic.Int64
	var wg sync.WaitGroup
	var spaces []*Space
	for i := range 4 {
		own := func(key string) bool { return strings.HasPrefix(key, "own/") }
		if i == 3 {
			own = nil
		}
		s := New(memstore.Share(base), own)
		spaces = append(spaces, s)
		for g := range 3 {
			r := rand.New(rand.NewPCG(uint64(i), uint64(g)))
			wg.Go(func() {
				for range 300 {
					if err := playUpdate(t.Context(), s, r, &committed, errUnequal); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
	plain, err := Read(t.Context(), spaces[0], func(v *View) (int, error) { n, _, err := Load[int](v, "plain"); return n, err })
	if int64(plain) != committed.Load() || err != nil {
		t.Errorf("%d were committed, and %d are there: %v", committed.Load(), plain, err)
	}
}

func playUpdate(ctx context.Context, s *Space, r *rand.Rand, committed *atomic.Int64, errUnequal error) error {
	before, move, lists := committed.Load(), r.IntN(4), r.IntN(3) == 0
	key := []string{"own/a", "own/b"}[r.IntN(2)]
	plain := 0
	err := s.Update(ctx, func(tx *Tx) error {
		a, _, errA := Load[int](tx, "own/a")
		if lists {
			kvs, err := tx.List("own/")
			if err == nil && len(kvs) == 2 && string(kvs[0].Value) != strconv.Itoa(a) {
				return errUnequal
			}
		}
		b, _, errB := Load[int](tx, "own/b")
		n, _, err := Load[int](tx, "plain")
		if err := errors.Join(errA, errB, err); err != nil {
			return err
		}
		if plain = n; a+b != n {
			return errUnequal
		}
		switch move {
		case 0: // this case only reads
			return nil
		case 1:
			tx.Remove("own/a")
			return tx.PutOrRemove("own/b", a+b, a+b > 0)
		}
		return errors.Join(tx.Put(key, map[string]int{"own/a": a, "own/b": b}[key]+1), tx.Put("plain", n+1))
	})
	if err == nil && move > 1 {
		committed.Add(1)
	}
	if err == nil && int64(plain) < before {
		err = fmt.Errorf("it saw %d, and %d were committed before it began", plain, before)
	}
	return err
}
