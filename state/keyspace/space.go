package keyspace

import (
	"context"

	"bijou/state/store"
	"bijou/state/storeurl"
)

// Space holds the keys of one store, or those below a prefix. Its methods may be called
// from several goroutines.
type Space struct {
	store  store.Store
	guards []Guard
}

// Guard makes commits conditional on a key being absent. It costs them nothing but the
// comparison.
type Guard struct {
	Key string
	// Leased restricts it to commits that write a key under a session.
	Leased bool
	// Explain returns the error of a commit that has met the key.
	Explain func(kv store.KV) error
}

// New returns the keys of a store, which Close closes. An update that reads a guard's key
// itself is not held by that guard.
func New(st store.Store, guards ...Guard) *Space { return &Space{store: st, guards: guards} }

// Open opens the keys below the prefix ("/neco/") of the store at the URL. An etcd URL may
// name another prefix. It never creates a store: ErrNoStore.
func Open(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Open)
}

// Create is Open, but makes the store if there is none.
func Create(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Create)
}

func open(ctx context.Context, url, prefix string, opened func(ctx context.Context, url string) (store.Store, error)) (*Space, error) {
	url, below := storeurl.WithPrefix(url, prefix)
	st, err := opened(ctx, url)
	if err != nil {
		return nil, err
	}
	if below {
		st = &prefixed{Store: st, prefix: prefix}
	}
	return New(st), nil
}

// Close ends the sessions and watchers of this Space and frees its store. It is idempotent.
func (s *Space) Close() error { return s.store.Close() }

// Health returns how each of the store's endpoints is, as it reports; nil for a store in
// a file.
func (s *Space) Health(ctx context.Context) map[string]string {
	if h, ok := s.store.(store.HealthReporter); ok {
		return h.Health(ctx)
	}
	return nil
}

// Store returns the store itself, for whoever copies it whole.
func (s *Space) Store() store.Store { return s.store }

// ReplaceEtcdMember is storeurl.ReplaceEtcdMember for a store that Open opens.
func ReplaceEtcdMember(ctx context.Context, url, prefix, member, peer string) (initialCluster string, err error) {
	url, _ = storeurl.WithPrefix(url, prefix)
	return storeurl.ReplaceEtcdMember(ctx, url, member, peer)
}
