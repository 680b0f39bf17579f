// Package storeurl opens, creates and removes the store that a URL names, for all kinds of stores.
//
// It does not keep stores open, and does not interpret their content.
package storeurl

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
	"bijou/state/store/remote"
	"bijou/state/store/sqlite"
	"bijou/state/store/trace"
)

// kind has the functions for the stores of one kind. Their parameter name is a path for a store in a file,
// and a URL for all other stores.
type kind struct {
	open   func(ctx context.Context, name string) (store.Store, error)
	create func(ctx context.Context, name string) error
	exists func(ctx context.Context, name string) (bool, error)
	remove func(ctx context.Context, name string) error
}

// sqliteKind returns the kind of stores in a file.
func sqliteKind() kind {
	remove := func(_ context.Context, path string) error { return sqlite.Remove(path) }
	return kind{open: sqlite.Open, create: sqlite.Create, exists: existsFile, remove: remove}
}

// existsFile reports whether there is a file at path.
func existsFile(_ context.Context, path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot examine the store: %w", err)
	}

	return true, nil
}

// etcdKind returns the kind of stores in etcd.
func etcdKind() kind {
	return kind{
		open:   etcd.Open,
		create: etcd.Create,
		exists: existsInEtcd,
		remove: etcd.Remove,
	}
}

// existsInEtcd reports whether there is a store at the URL in etcd.
func existsInEtcd(ctx context.Context, url string) (bool, error) {
	s, err := etcd.Open(ctx, url)
	if errors.Is(err, store.ErrNoStore) {
		return false, nil
	}
	if err != nil {
		return false, err
	}

	return true, s.Close()
}

// remoteKind returns the kind of stores that a gateway serves. They cannot be created or removed through the
// gateway.
func remoteKind() kind {
	refuse := func(_ context.Context, url string) error {
		return charm.Invalidf("cannot create or remove the store at %q: the URL is that of a gateway: %s", url, wantURL)
	}
	exists := func(ctx context.Context, url string) (bool, error) {
		s, err := remote.Open(ctx, url)
		if err != nil {
			return false, err
		}
		return true, s.Close()
	}
	return kind{open: remote.Open, create: refuse, exists: exists, remove: refuse}
}

const wantURL = "want sqlite:PATH, etcd://HOST:PORT,.../PREFIX or etcd+unix:///SOCKET?prefix=/PREFIX"

// parseURL returns the kind of store that a URL names, and the name that this kind's functions take: the path
// in a sqlite URL, and the whole URL for any other store.
func parseURL(url string) (k kind, name string, err error) {
	scheme, afterScheme, ok := strings.Cut(url, ":")
	if !ok || afterScheme == "" {
		return kind{}, "", charm.Invalidf("invalid state URL %q: %s", url, wantURL)
	}

	switch scheme {
	case "sqlite":
		return sqliteKind(), afterScheme, nil
	case "etcd", "etcd+unix":
		return etcdKind(), url, nil
	case "bijou+unix":
		return remoteKind(), url, nil
	case "mem":
		return kind{}, "", charm.Invalidf(
			"cannot use state URL %q: a store in memory exists only in one process, and is for tests: %s",
			url,
			wantURL,
		)
	}

	return kind{}, "", charm.Invalidf("cannot use state URL %q: unknown kind of store %q: %s", url, scheme,
		wantURL)
}

// Open opens the store at the URL: "sqlite:PATH", "etcd://HOST:PORT,.../PREFIX",
// "etcd+unix:///SOCKET?prefix=/PREFIX", or "bijou+unix:///SOCKET" for the store that a gateway serves. It
// never creates a store: it returns store.ErrNoStore if there is none.
func Open(ctx context.Context, url string) (store.Store, error) {
	k, name, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	s, err := k.open(ctx, name)
	if err != nil {
		return nil, err
	}

	return trace.New(ctx, s, slog.With("part", "store")), nil
}

// Create opens the store at the URL, and creates it if there is none. Unlike Open, it does not log the use of the
// store. It returns an error for the URL of a gateway.
func Create(ctx context.Context, url string) (store.Store, error) {
	k, name, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	if err := k.create(ctx, name); err != nil && !errors.Is(err, store.ErrExists) {
		return nil, err
	}

	return k.open(ctx, name)
}

// Exists reports whether there is a store at the URL, even one without an environment.
func Exists(ctx context.Context, url string) (bool, error) {
	k, name, err := parseURL(url)
	if err != nil {
		return false, err
	}
	return k.exists(ctx, name)
}

// Remove removes the store at the URL with all its content. Processes that have the store open get
// store.ErrStoreGone. Remove returns no error if there is no store, but an error for the URL of a gateway.
func Remove(ctx context.Context, url string) error {
	k, name, err := parseURL(url)
	if err != nil {
		return err
	}
	return k.remove(ctx, name)
}

// SetAsideReplaced moves the files of a store that was replaced while it was open into a new directory, as
// sqlite.SetAsideReplaced does. For the URL of a store that is not in a file, it does nothing and returns "".
func SetAsideReplaced(url string) (directory string, err error) {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return "", nil
	}
	return sqlite.SetAsideReplaced(path)
}

// ReplaceEtcdMember does what etcd.ReplaceMember does. It also works for a cluster without an environment.
func ReplaceEtcdMember(ctx context.Context, url, member, peer string) (initialCluster string, err error) {
	return etcd.ReplaceMember(ctx, url, member, peer)
}

// WithPrefix returns an etcd URL with the prefix, unless the URL already has a prefix. The prefix must begin with
// a slash, and WithPrefix drops slashes at its end. It returns the URL of any other store unchanged, with
// mustAddPrefix true: the caller must then add the prefix to each key.
func WithPrefix(url, prefix string) (complete string, mustAddPrefix bool) {
	base, query, _ := strings.Cut(url, "?")
	scheme, afterScheme, _ := strings.Cut(base, "://")
	prefix = strings.TrimRight(prefix, "/")

	switch scheme {
	case "etcd":
		hosts, path, _ := strings.Cut(afterScheme, "/")
		if path == "" {
			base = "etcd://" + hosts + prefix
		}
	case "etcd+unix":
		hasPrefix := strings.Contains("&"+query, "&prefix=")
		if !hasPrefix {
			query = strings.TrimPrefix(query+"&prefix="+prefix, "&")
		}
	default:
		return url, true
	}

	if query == "" {
		return base, false
	}
	return base + "?" + query, false
}
