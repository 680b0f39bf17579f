package storetest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"

	"bijou/state/store"
)

var raceCases = []testCase{
	{"increments under conflict add up", increments},
	{"list and put never make a phantom", phantoms},
	{"one of many wins a key", oneWinner},
}

// increments makes many goroutines on two handles count up one key.
func increments(f *fixture) {
	const goroutines = 8
	each := scale(50)
	both := []handle{f.handle, f.share()}
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for range each {
				if err := both[i%2].increment("n"); err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	f.has("n", "n", fmt.Sprint(goroutines*each))
}

// increment adds one to a counter. It retries until no other commit interferes.
func (h handle) increment(key string) error {
	for {
		kv, n, err := h.counter(key)
		if err != nil {
			return err
		}
		_, err = h.s.Commit(h.ctx, store.Txn{
			Conds: []store.Cond{{Key: key, Revision: kv.Revision}},
			Ops:   []store.Op{put(key, strconv.Itoa(n+1))},
		})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func (h handle) counter(key string) (store.KV, int, error) {
	snap, err := h.s.Snapshot(h.ctx)
	if err != nil {
		return store.KV{}, 0, err
	}
	defer snap.Close()
	kv, ok, err := snap.Get(h.ctx, key)
	if err != nil || !ok {
		return kv, 0, err
	}
	n, err := strconv.Atoi(string(kv.Value))
	return kv, n, err
}

// phantoms makes many goroutines list a prefix and add the next number, with a condition only on the prefix.
// No number may be lost.
func phantoms(f *fixture) {
	const goroutines = 4
	each := scale(30)
	both := []handle{f.handle, f.share()}
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			for j := range each {
				if err := both[i%2].appendTo("p/", fmt.Sprintf("%d-%d", i, j)); err != nil {
					f.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	kvs, err := f.snapshot().List(f.ctx, "p/")
	f.ok(err)
	f.equal(len(kvs), goroutines*each)
}

// appendTo writes the value below the prefix. The key is the number of existing keys there.
func (h handle) appendTo(prefix, value string) error {
	for {
		snap, err := h.s.Snapshot(h.ctx)
		if err != nil {
			return err
		}
		kvs, err := snap.List(h.ctx, prefix)
		if err != nil {
			return err
		}
		revision, err := snap.Revision(h.ctx)
		snap.Close()
		if err != nil {
			return err
		}
		_, err = h.s.Commit(h.ctx, store.Txn{
			Conds: []store.Cond{{Prefix: prefix, Revision: revision}},
			Ops:   []store.Op{put(fmt.Sprintf("%s%06d", prefix, len(kvs)), value)},
		})
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

func oneWinner(f *fixture) {
	const goroutines = 16
	both := []handle{f.handle, f.share()}
	won := make(chan string, goroutines)
	var all sync.WaitGroup
	for i := range goroutines {
		all.Go(func() {
			me := fmt.Sprint(i)
			_, err := both[i%2].s.Commit(f.ctx, store.Txn{
				Conds: []store.Cond{{Key: "leader"}}, Ops: []store.Op{put("leader", me)},
			})
			if err == nil {
				won <- me
			} else if !errors.Is(err, store.ErrConflict) {
				f.Error(err)
			}
		})
	}
	all.Wait()
	close(won)
	winner := <-won
	if _, more := <-won; winner == "" || more {
		f.Fatal("not exactly one has won")
	}
	f.has("leader", "leader", winner)
}
