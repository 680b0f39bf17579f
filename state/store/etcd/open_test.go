package etcd_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/kit/need"
)

func TestURLs(t *testing.T) {
	need.Whole(t)
	for _, c := range []struct{ url, want string }{
		{"etcd://h:2379", "prefix"},
		{"etcd://h:2379/", "prefix"},
		{"etcd://h:2379/a/", "prefix"},
		{"etcd://h:2379/a/../b", "prefix"},
		{"etcd://h:2379/a b", "prefix"},
		{"etcd://h:2379/\x00store", "prefix"},
		{"etcd://h:2379/a?prefix=/b", "in the path"},
		{"etcd://h/a", "not HOST:PORT"},
		{"etcd:///a", "not HOST:PORT"},
		{"etcd://h:2379,/a", "not HOST:PORT"},
		{"etcd://root:hunter2@h:2379/a", "must not contain a user"},
		{"etcd://h:2379/a?password=hunter2", "unknown option"},
		{"etcd://u:p?hunter2@h:2379/a", "not a query"},
		{"etcd://u:p?hunter2=x@h:2379/a", "not a query"},
		{"etcd://u:p?hunter2&x@h:2379/a", "not a query"},
		{"etcd://h:2379/a?user=u&password-file=hunter2", "password-file is not an absolute path"},
		{"etcd://h:2379/a?user=root", "must be given together"},
		{"etcd://h:2379/a?cert=/c", "must be given together"},
		{"etcd://h:2379/a?ca=ca.pem", "not an absolute path"},
		{"etcd://h:2379/a?ca=/a&ca=/b", "twice"},
		{"etcd://h:2379/a?tls=yes", "tls"},
		{"etcd+unix://run/sock?prefix=/a", "not an absolute path"},
		{"etcd+unix:///run/sock", "prefix"},
		{"zk://h:1/a", "want etcd://"},
	} {
		t.Run(c.url, func(t *testing.T) {
			_, err := etcd.Open(t.Context(), c.url)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want an error about %q", c.url, err, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: the error tells the password: %v", c.url, err)
			}
		})
	}
}

func TestCreateAndOpen(t *testing.T) {
	need.Whole(t)
	c := clusters.borrow(t, 1)
	url := clusters.newURL(c)
	_, err := etcd.Open(t.Context(), url)
	wantError(t, err, store.ErrNoStore)
	check(t, etcd.Create(t.Context(), url))
	wantError(t, etcd.Create(t.Context(), url), store.ErrExists)
	s := openAt(t, url)
	defer s.Close()
	put(t, s, "services/mysql")

	if err := etcd.Create(t.Context(), url+"/inner"); err == nil || !strings.Contains(err.Error(), "is inside the store") {
		t.Errorf("a store within a store: %v", err)
	}
	outer := url[:strings.LastIndex(url, "/")]
	if err := etcd.Create(t.Context(), outer); err == nil || !strings.Contains(err.Error(), "other keys exist below") {
		t.Errorf("a store around a store: %v", err)
	}
	_, err = etcd.Client(s).Put(t.Context(), "/foreign/key", "1")
	check(t, err)
	defer etcd.Client(s).Delete(context.Background(), "/foreign/key")
	if err := etcd.Create(t.Context(), c.URL("/foreign")); err == nil || errors.Is(err, store.ErrExists) {
		t.Errorf("a store over foreign keys: %v", err)
	}
}

// TestNeighbours checks stores of which one has a prefix that begins with the prefix of the other.
func TestNeighbours(t *testing.T) {
	need.Whole(t)
	c := clusters.borrow(t, 1)
	url := clusters.newURL(c)
	var stores []store.Store
	for _, end := range []string{"", "0", "-x", "."} {
		check(t, etcd.Create(t.Context(), url+"x"+end))
		s := openAt(t, url+"x"+end)
		defer s.Close()
		stores = append(stores, s)
	}
	for _, s := range stores {
		w, err := s.Watch(t.Context(), revision(t, s), store.Below(""))
		check(t, err)
		defer w.Close()
		for _, other := range stores {
			put(t, other, "\x00store", "a", "gone/a", "\xff")
		}
		b, err := w.Next(t.Context())
		check(t, err)
		if len(b.Events) != 4 {
			t.Errorf("got %d events, want 4", len(b.Events))
		}
		if n := len(list(t, s, "")); n != 4 {
			t.Errorf("%d keys, want 4", n)
		}
		short, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if b, err := w.Next(short); err == nil {
			t.Errorf("the watcher heard of %v", b)
		}
	}
}

// TestDeadEndpoint checks that Open fails in time if no server listens at the address.
func TestDeadEndpoint(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	for _, url := range []string{
		"etcd+unix:///nonexistent/sock?prefix=/a", "etcd://127.0.0.1:1/a", "etcd://127.0.0.1:1,127.0.0.1:2/a?tls=true",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			// Ten seconds are enough for all attempts, even on a busy machine.
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := etcd.Open(ctx, url)
			if err == nil || !strings.Contains(err.Error(), "does not answer") || !strings.Contains(err.Error(), "onnect") {
				t.Error(err)
			}
			wantError(t, err, context.DeadlineExceeded)
			wantError(t, err, store.ErrAway)
			wantError(t, etcd.Create(ctx, url), context.DeadlineExceeded)
		})
	}
}

func TestStoreGone(t *testing.T) {
	need.Whole(t)
	for _, how := range []string{"deleted", "replaced"} {
		t.Run(how, func(t *testing.T) {
			s := newStore(t, clusters.borrow(t, 1))
			defer s.Close()
			before := put(t, s, "a")
			w, err := s.Watch(t.Context(), before, store.Below("a"))
			check(t, err)
			short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			_, err = w.Next(short)
			cancel()
			wantError(t, err, context.DeadlineExceeded)
			snap, err := s.Snapshot(t.Context())
			check(t, err)
			defer snap.Close()

			_, err = etcd.Client(s).Delete(t.Context(), etcd.Root(s), prefixed)
			check(t, err)
			if how == "replaced" {
				check(t, etcd.Create(t.Context(), etcd.URL(s)))
			}
			_, err = s.Commit(t.Context(), store.Txn{Ops: []store.Op{{Key: "b"}}})
			wantError(t, err, store.ErrStoreGone)
			_, err = snap.List(t.Context(), "")
			wantError(t, err, store.ErrStoreGone)
			for err = nil; err == nil; {
				_, err = w.Next(t.Context())
			}
			wantError(t, err, store.ErrStoreGone)
			_, err = s.Snapshot(t.Context())
			wantError(t, err, store.ErrStoreGone)
		})
	}
}
