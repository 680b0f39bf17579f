package etcd_test

import (
	"context"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/testscripts/fakes/etcdtest"
	"bijou/testscripts/kit/need"
)

// writeSecret writes a file with the mode, and returns its path for a URL.
func writeSecret(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(path, []byte(content), mode))
	return url.QueryEscape(path)
}

// TestUsers checks an etcd with users, one of whom has access to only one prefix. The users' tokens expire
// while the store is open.
func TestUsers(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{Flags: []string{"--auth-token-ttl=1"}})
	check(t, c.EnableUsers("/own/env", "tr0ub4dor"))
	as := func(prefix, user, file string) string {
		return c.URL(prefix) + "&user=" + user + "&password-file=" + file
	}
	good := writeSecret(t, "tr0ub4dor\n", 0o600)
	check(t, etcd.Create(t.Context(), as("/own/env", "bijou", good)))
	s := openAt(t, as("/own/env", "bijou", good))
	defer s.Close()
	l, err := s.Lease(t.Context(), steadyTTL)
	check(t, err)
	w, err := s.Watch(t.Context(), revision(t, s), store.Below(""))
	check(t, err)
	defer w.Close()
	for range 3 {
		commit(t, s, store.Txn{Ops: []store.Op{{Key: "k", Lease: l.ID()}}})
		_, err := w.Next(t.Context())
		check(t, err)
		// In total this is longer than the TTL of a lease.
		waitFault(steadyTTL / 2)
	}
	list(t, s, "")

	for what, url := range map[string]string{
		"wrong password":        as("/own/env", "bijou", writeSecret(t, "hunter2", 0o600)),
		"no such user":          as("/own/env", "nobody", good),
		"no user":               c.URL("/own/env"),
		"a prefix of others":    as("/other/env", "bijou", good),
		"others may read it":    as("/own/env", "bijou", writeSecret(t, "hunter2", 0o640)),
		"an empty file":         as("/own/env", "bijou", writeSecret(t, "\n", 0o600)),
		"there is no such file": as("/own/env", "bijou", "/nonexistent"),
	} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := etcd.Open(ctx, url)
		cancel()
		if err == nil || ctx.Err() == context.DeadlineExceeded {
			t.Errorf("%s: got %v", what, err)
			continue
		}
		if strings.Contains(err.Error(), "does not answer") {
			t.Errorf("%s: it does answer: %v", what, err)
		}
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tr0ub4dor") {
			t.Errorf("%s: the error tells a password: %v", what, err)
		}
	}
}

// TestPasswordChanges changes the password under an open store. The store must report this. Once the file has
// the new password, the store and its watchers must work again.
func TestPasswordChanges(t *testing.T) {
	need.Whole(t)
	t.Parallel()
	c := etcdtest.For(t, etcdtest.Options{})
	check(t, c.EnableUsers("/own/env", "tr0ub4dor"))
	file := filepath.Join(t.TempDir(), "password")
	check(t, os.WriteFile(file, []byte("tr0ub4dor"), 0o600))
	place := c.URL("/own/env") + "&user=bijou&password-file=" + url.QueryEscape(file)
	check(t, etcd.Create(t.Context(), place))
	s := openAt(t, place)
	defer s.Close()
	w, err := s.Watch(t.Context(), revision(t, s), store.Below(""))
	check(t, err)
	defer w.Close()

	check(t, c.ChangePassword("hunter2"))
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		_, err = s.Commit(ctx, store.Txn{Ops: []store.Op{{Key: "k"}}})
		cancel()
		if err == nil || !strings.Contains(err.Error(), "wrong user or password") || strings.Contains(err.Error(), "does not answer") {
			t.Errorf("with the old password: %v", err)
		}
	}
	check(t, os.WriteFile(file, []byte("hunter2\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	_, err = commitUntilKnown(ctx, s, store.Txn{Ops: []store.Op{{Key: "k"}}})
	check(t, err)
	_, err = w.Next(ctx)
	check(t, err)
}
