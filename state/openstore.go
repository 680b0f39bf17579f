package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"bijou/state/charm"
	"bijou/state/store"
	"bijou/state/store/etcd"
	"bijou/state/store/sqlite"
	"bijou/state/store/trace"
)

// storeKind opens and makes stores of one kind, given the whole URL and what follows the
// scheme's colon.
type storeKind struct {
	open   func(ctx context.Context, url, rest string) (store.Store, error)
	create func(ctx context.Context, url, rest string) error
	exists func(ctx context.Context, url, rest string) (bool, error)
	remove func(ctx context.Context, url, rest string) error
}

func sqliteKind() storeKind {
	return storeKind{
		open:   func(ctx context.Context, _, path string) (store.Store, error) { return sqlite.Open(ctx, path) },
		create: func(ctx context.Context, _, path string) error { return sqlite.Create(ctx, path) },
		exists: func(_ context.Context, _, path string) (bool, error) {
			_, err := os.Lstat(path)
			if err == nil || errors.Is(err, fs.ErrNotExist) {
				return err == nil, nil
			}
			return false, fmt.Errorf("cannot look at the store: %w", err)
		},
		remove: func(_ context.Context, _, path string) error { return sqlite.Remove(path) },
	}
}

func etcdKind() storeKind {
	return storeKind{
		open:   func(ctx context.Context, url, _ string) (store.Store, error) { return etcd.Open(ctx, url) },
		create: func(ctx context.Context, url, _ string) error { return etcd.Create(ctx, url) },
		exists: func(ctx context.Context, url, _ string) (bool, error) {
			s, err := etcd.Open(ctx, url)
			if errors.Is(err, store.ErrNoStore) {
				return false, nil
			}
			if err != nil {
				return false, err
			}
			return true, s.Close()
		},
		remove: func(ctx context.Context, url, _ string) error { return etcd.Remove(ctx, url) },
	}
}

const wantStoreURL = "want sqlite:PATH, etcd://HOST:PORT,.../PREFIX or etcd+unix:///SOCKET?prefix=/PREFIX"

func parseStoreURL(url string) (k storeKind, rest string, err error) {
	scheme, rest, ok := strings.Cut(url, ":")
	if !ok || rest == "" {
		return storeKind{}, "", charm.Invalidf("invalid state URL %q: %s", url, wantStoreURL)
	}
	switch scheme {
	case "sqlite":
		return sqliteKind(), rest, nil
	case "etcd", "etcd+unix":
		return etcdKind(), rest, nil
	case "mem":
		return storeKind{}, "", charm.Invalidf("cannot use state URL %q: a store in memory lives in one process only, and is for tests: %s", url, wantStoreURL)
	}
	return storeKind{}, "", charm.Invalidf("cannot use state URL %q: unknown kind of store %q: %s", url, scheme, wantStoreURL)
}

func openStore(ctx context.Context, url string) (store.Store, error) {
	k, rest, err := parseStoreURL(url)
	if err != nil {
		return nil, err
	}
	s, err := k.open(ctx, url, rest)
	if err != nil {
		return nil, err
	}
	return trace.New(ctx, s, slog.With("part", "store")), nil
}

// createStore opens a store that is there already, too.
func createStore(ctx context.Context, url string) (store.Store, error) {
	k, rest, err := parseStoreURL(url)
	if err != nil {
		return nil, err
	}
	if err := k.create(ctx, url, rest); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}
	return k.open(ctx, url, rest)
}

// StoreExists reports whether there is a store at the URL, with or without an
// environment in it.
func StoreExists(ctx context.Context, url string) (bool, error) {
	k, rest, err := parseStoreURL(url)
	if err != nil {
		return false, err
	}
	return k.exists(ctx, url, rest)
}

// RemoveStore removes the store at the URL with everything in it; one that is not there
// is no error. Whoever has it open gets ErrStoreGone.
func RemoveStore(ctx context.Context, url string) error {
	k, rest, err := parseStoreURL(url)
	if err != nil {
		return err
	}
	return k.remove(ctx, url, rest)
}

// ReplaceEtcdMember is etcd.ReplaceMember, whatever is stored there.
func ReplaceEtcdMember(ctx context.Context, url, member, peer string) (initialCluster string, err error) {
	url, _ = splitKeyspaceURL(url)
	return etcd.ReplaceMember(ctx, url, member, peer)
}
