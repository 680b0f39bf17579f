package keyspace

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/memstore"
)

// countedReads is a store that counts the keys which are read one by one.
type countedReads struct {
	store.Store
	reads int
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
	s.of.reads++
	return s.Snapshot.Get(ctx, key)
}

func (s *countedRead) Prefetch(ctx context.Context, keys ...string) error {
	s.of.reads += len(keys)
	return s.Snapshot.Prefetch(ctx, keys...)
}

// TestOwnKeysAreReadOnce: what a process's updates have read or written of its own keys is not read again,
// and whatever another process does to them meanwhile, no update rests on what was.
func TestOwnKeysAreReadOnce(t *testing.T) {
	errGone := errors.New("it is gone")
	var seen []int // by the runs of an update
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
	compare := func(tx *Tx) error { // with what a list has of it
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
		before func(tx *Tx) error // by the other process; nil: nothing
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
