package handle_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"bijou/state/store"
	"bijou/state/store/handle"
)

func TestIndex(t *testing.T) {
	spans := map[string][]handle.Span{
		"all": handle.Spans(store.Below("")), "a": handle.Spans(store.Below("a/b", "a/", "a/", "c")),
		"key": handle.Spans(store.Exactly("a/x", "c")), "none": handle.Spans(store.Below("z")), "left": handle.Spans(store.Below("a/")),
		"begins": handle.Spans(store.Exactly("a", "a/")),
	}
	x := handle.WatcherIndex[string]{}
	for w, s := range spans {
		x.Add(w, s)
	}
	if idle := x.Remove("left", spans["left"]); len(idle) != 0 {
		t.Errorf("%v are idle", idle)
	}
	x.Remove("left", spans["left"])
	ax, b, c := store.Event{Key: "a/x"}, store.Event{Key: "b", Deleted: true}, store.Event{Key: "c/"}
	got := x.SplitBatch(store.Batch{Revision: 7, Events: []store.Event{ax, b, c}})
	want := map[string]store.Batch{
		"all": {Revision: 7, Events: []store.Event{ax, b, c}},
		"a":   {Revision: 7, Events: []store.Event{ax, c}},
		"key": {Revision: 7, Events: []store.Event{ax}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	idle := []handle.Span{{Text: "a/", Prefix: true}, {Text: "c", Prefix: true}}
	if diff := cmp.Diff(idle, x.Remove("a", spans["a"])); diff != "" {
		t.Errorf("idle: %s", diff)
	}
}

// fake acts as the store for a lease, with the clock of a synctest bubble.
type fake struct {
	answer    func(n int64) (lives bool, err error) // returns the answer to the n-th refresh
	refreshed atomic.Int64
	revoked   atomic.Int64
}

const ttl = 60 * time.Second

func (f *fake) term() handle.GrantedLease {
	return handle.GrantedLease{
		ID: 1, TTL: ttl, RequestedAt: time.Now(),
		Refresh: func(context.Context) (bool, error) { return f.answer(f.refreshed.Add(1)) },
		Revoke:  func(context.Context) error { f.revoked.Add(1); return nil },
	}
}

var errAway = errors.New("nobody answers")

// TestKeep checks whether a lease lives for two TTLs, and otherwise when it ends.
func TestKeep(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer func(n int64) (bool, error)
		done   time.Duration // 0 if the lease does not end
		asked  int64
	}{
		{"refreshed", func(int64) (bool, error) { return true, nil }, 0, 5},
		{"lost", func(n int64) (bool, error) { return n < 3, nil }, ttl, 3},
		{"away for ever", func(int64) (bool, error) { return false, errAway }, ttl, 15}, // at 20 s, then every 3 s up to 60 s
		{"away for a while", func(n int64) (bool, error) { return n > 10, nilIf(n > 10) }, 0, 14},
		{"a refresh that takes the TTL", func(int64) (bool, error) { time.Sleep(ttl); return true, nil }, ttl * 4 / 3, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, o, began := &fake{answer: c.answer}, handle.New(), time.Now()
				l, err := o.KeepLease(f.term())
				if err != nil {
					t.Fatal(err)
				}
				ended := time.Duration(0)
				select {
				case <-l.Done():
					ended = time.Since(began)
				case <-time.After(2*ttl - time.Second):
				}
				if ended != c.done || f.refreshed.Load() != c.asked {
					t.Errorf("done after %v, asked %d times; want %v and %d", ended, f.refreshed.Load(), c.done, c.asked)
				}
				o.Close(func() {})
				<-l.Done()
				if revoked := f.revoked.Load(); (revoked == 1) != (c.done == 0) {
					t.Errorf("revoked %d times", revoked)
				}
			})
		})
	}
}

func nilIf(ok bool) error {
	if ok {
		return nil
	}
	return errAway
}

func TestEnds(t *testing.T) {
	o, f := handle.New(), &fake{answer: func(int64) (bool, error) { return true, nil }}
	closed, kept, dropped := keep(t, o, f), keep(t, o, f), 0
	if err := errors.Join(closed.Close(t.Context()), closed.Close(t.Context())); err != nil || f.revoked.Load() != 2 {
		t.Errorf("revoked %d times, %v", f.revoked.Load(), err)
	}
	<-closed.Done()
	running := make(chan bool)
	o.Go(func() { <-o.Context().Done(); close(running) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	is(t, o.CheckUsable(ctx), context.Canceled)
	is(t, o.MarkGone(), store.ErrStoreGone)
	is(t, o.CheckUsable(ctx), store.ErrStoreGone)
	// The store is gone, so the lease ends.
	<-kept.Done()
	for range 2 {
		o.Close(func() { <-running; dropped++ })
	}
	is(t, o.CheckUsable(ctx), store.ErrClosed)
	is(t, kept.Close(t.Context()), nil)
	o.Go(func() { t.Error("a goroutine begins after the end") })
	if _, err := o.KeepLease(f.term()); !errors.Is(err, store.ErrClosed) || dropped != 1 {
		t.Errorf("got %v, freed %d times", err, dropped)
	}
}

func keep(t *testing.T, o *handle.Opener, f *fake) store.Lease {
	t.Helper()
	l, err := o.KeepLease(f.term())
	is(t, err, nil)
	return l
}

func is(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
