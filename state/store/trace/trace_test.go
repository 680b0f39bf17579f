package trace

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"strings"
	"testing"

	"bijou/state/store"
	"bijou/testscripts/conformance/storetest"
	"bijou/testscripts/fakes/memstore"
)

// TestConformance runs the suite of stores over a traced store.
func TestConformance(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	wrap := func(s store.Store) store.Store { return New(t.Context(), s, log) }
	inner := func(s store.Store) store.Store { return s.(*traced).Store }
	storetest.Run(t, storetest.Opener{
		Bubble:  true,
		Fresh:   func(testing.TB) store.Store { return wrap(memstore.New()) },
		Share:   func(_ testing.TB, s store.Store) store.Store { return wrap(memstore.Share(inner(s))) },
		Compact: func(_ testing.TB, s store.Store, revision int64) { memstore.Compact(inner(s), revision) },
		Expire:  func(_ testing.TB, s store.Store, id store.LeaseID) { memstore.Expire(inner(s), id) },
		Kill:    func(_ testing.TB, s store.Store) { memstore.Abandon(inner(s)) },
	})
}

func TestTells(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := New(t.Context(), memstore.New(), log)
	defer s.Close()
	w, err := s.Watch(t.Context(), 0, store.Below("a"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	txn := store.Txn{Ops: []store.Op{{Key: "a", Value: []byte("secret")}, {Key: "b", Delete: true}}}
	if _, err := s.Commit(t.Context(), txn); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	readAll(t, s)
	for _, want := range []string{"msg=snapshot gets=1 lists=1 keys=1\n", "msg=watch after=0 keys=[] prefixes=[a]", "msg=commit puts=[a] deletes=[b]", "msg=changes revision=1 keys=[a]"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "secret") {
		t.Errorf("a value was told:\n%s", out.String())
	}
}

// readAll reads existing keys, by key and by prefix.
func readAll(t *testing.T, s store.Store) {
	snap, err := s.Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer snap.Close()
	if _, _, err := snap.Get(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	if _, err := snap.List(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
}

// healthy is a store with endpoints.
type healthy struct{ store.Store }

func (healthy) Health(context.Context) map[string]string { return map[string]string{"a:1": "healthy"} }

func TestHealthOfATracedStore(t *testing.T) {
	log := slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s := New(t.Context(), healthy{memstore.New()}, log)
	defer s.Close()
	if got := s.(store.HealthReporter).Health(t.Context()); got["a:1"] != "healthy" {
		t.Errorf("got %v", got)
	}
}

func TestQuiet(t *testing.T) {
	s := memstore.New()
	defer s.Close()
	if got := New(t.Context(), s, slog.New(slog.DiscardHandler)); got != s {
		t.Error("a store that nobody listens to is traced")
	}
}
