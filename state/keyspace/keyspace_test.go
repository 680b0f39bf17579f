package keyspace

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"bijou/state/storeurl"
	"bijou/testscripts/fakes/etcdtest"
)

const testPrefix = "/neco/"

// TestKeyspacePlace checks the place of keys in a store. If the URL of an etcd has no prefix, the default
// prefix is used.
func TestKeyspacePlace(t *testing.T) {
	for _, tt := range []struct {
		url, complete string
		below         bool
	}{
		{"sqlite:/x/neco.db", "sqlite:/x/neco.db", true},
		{"etcd://a:1,b:2", "etcd://a:1,b:2/neco", false},
		{"etcd://a:1,b:2/", "etcd://a:1,b:2/neco", false},
		{"etcd://a:1/boot/neco", "etcd://a:1/boot/neco", false},
		{"etcd://a:1?user=u&password-file=/p", "etcd://a:1/neco?user=u&password-file=/p", false},
		{"etcd+unix:///s", "etcd+unix:///s?prefix=/neco", false},
		{"etcd+unix:///s?user=u", "etcd+unix:///s?user=u&prefix=/neco", false},
		{"etcd+unix:///s?prefix=/x", "etcd+unix:///s?prefix=/x", false},
	} {
		t.Run(tt.url, func(t *testing.T) {
			complete, below := storeurl.WithPrefix(tt.url, testPrefix)
			if complete != tt.complete || below != tt.below {
				t.Errorf("%s: %q, %t", tt.url, complete, below)
			}
		})
	}
}

func TestKeyspace(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) { testKeyspace(t, "sqlite:"+t.TempDir()+"/neco.db") })
	t.Run("etcd", func(t *testing.T) {
		etcdtest.Need(t)
		testKeyspace(t, etcdtest.For(t, etcdtest.Options{Members: 1}).URL("/neco"))
	})
}

func testKeyspace(t *testing.T, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), 90*time.Second)
	defer cancel()
	if _, err := Open(ctx, url, testPrefix); !errors.Is(err, ErrNoStore) {
		t.Fatalf("before it was made: %v", err)
	}
	k, err := Create(ctx, url, testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	checkKeys(ctx, t, k)
	checkLeaders(ctx, t, k, url)
}

// checkKeys writes, watches and reads keys.
func checkKeys(ctx context.Context, t *testing.T, k *Space) {
	write := func(tx *Tx) error { return tx.Put("info/bootservers/10", struct{}{}) }
	var before int64
	if err := k.View(ctx, func(v *View) (err error) { before, err = v.Revision(); return err }); err != nil {
		t.Fatal(err)
	}
	w, err := k.Watch(ctx, before, Below("info/"))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := k.Update(ctx, write); err != nil {
		t.Fatal(err)
	}
	keys, err := w.Next(ctx)
	if diff := cmp.Diff([]string{"info/bootservers/10"}, keys); diff != "" || err != nil {
		t.Error(diff, err)
	}
	err = k.View(ctx, func(v *View) error {
		all, err := v.List("info/bootservers/1")
		if diff := cmp.Diff([]KeyValue{{Key: "info/bootservers/10", Value: []byte("{}")}}, all, cmpopts.IgnoreFields(KeyValue{}, "Revision")); diff != "" {
			t.Error(diff)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	checkPutIf(ctx, t, k)
}

// checkPutIf checks writes on the condition that a key is unchanged, for a key that has changed and for one
// that has not.
func checkPutIf(ctx context.Context, t *testing.T, k *Space) {
	var at int64
	read := func(v *View) (err error) {
		var doc struct{}
		at, err = v.GetAt("info/bootservers/10", &doc)
		return err
	}
	if err := k.View(ctx, read); err != nil || at == 0 {
		t.Fatal(at, err)
	}
	for _, c := range []struct {
		guard    string
		revision int64
		written  bool
	}{{"info/bootservers/10", at, true}, {"info/bootservers/10", at - 1, false}, {"info/bootservers/10", 0, false}, {"info/none", 0, true}} {
		if written, err := k.PutIf(ctx, c.guard, c.revision, "status/x", c.revision); written != c.written || err != nil {
			t.Errorf("%+v: %v, %v", c, written, err)
		}
	}
}

// checkLeaders runs two processes that campaign, and ends the first one.
func checkLeaders(ctx context.Context, t *testing.T, k *Space, url string) {
	other, err := Open(ctx, url, testPrefix)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	first, err := k.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	second, err := other.NewSession(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close(ctx)
	old, err := first.Campaign(ctx, "leader/updater/holder", Candidate{})
	if err != nil {
		t.Fatal(err)
	}
	won := make(chan error, 1)
	go func() {
		l, err := second.Campaign(ctx, "leader/updater/holder", Candidate{})
		if err == nil {
			err = l.Update(ctx, func(tx *Tx) error { return tx.PutLeased("presence/1", "here", second) })
		}
		won <- err
	}()
	if err := old.Update(ctx, func(tx *Tx) error { return tx.Put("info/release", "1.2") }); err != nil {
		t.Error(err)
	}
	if err := first.Close(ctx); err != nil {
		t.Error(err)
	}
	if err := <-won; err != nil {
		t.Error(err)
	}
	if err := old.Update(ctx, func(tx *Tx) error { return tx.Put("info/release", "1.3") }); !errors.Is(err, ErrSessionLost) {
		t.Errorf("a deposed leader writes: %v", err)
	}
}
