// Package keyspace is the key-value layer: views at one revision, updates that are
// conditional on all that they read, watches, sessions, leaderships, claims and blobs,
// over any of the stores. Values are JSON.
//
// It does not know what the keys mean. Package state stores the environment in keys, and the updater stores its
// records in keys.
package keyspace

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"bijou/state/metrics"
	"bijou/state/store"
	"bijou/state/storeurl"
)

// Space gives access to the keys of one store, or to its keys below a prefix. Its methods may be called
// from several goroutines.
type Space struct {
	store  store.Store
	guards []Guard
	isOwn  func(key string) bool // see New
	memory atomic.Pointer[memory]

	// Metrics collects the durations of the store's requests, and measurements from the space's users. It
	// must be set before the space is shared. If it is nil, nothing is measured.
	Metrics *metrics.Registry

	// Progress receives a report before the first step of a long job, and after each step. A job has ended
	// when Done equals Total, or when the job's function returns. The reports come one after another. Progress must be set
	// before the space is shared.
	Progress Progress

	// Damaged is called for each record that a listing has skipped because it does not decode, once for each
	// key. It must be set before the space is shared. If it is nil, the default logger logs the error.
	Damaged  func(err error)
	reported sync.Map // the keys of damaged records that were reported
}

// Progress receives reports of a long job. A nil Progress ignores them.
type Progress func(Steps)

// Report calls p with the steps of a job. It does nothing if the job has no steps.
func (p Progress) Report(steps Steps) {
	if p != nil && steps.Total > 0 {
		p(steps)
	}
}

// Steps counts the steps of a long job.
type Steps struct {
	What        string // noun for the steps, such as "units of mysql added"
	Done, Total int
}

// Guard makes commits conditional on a key being absent, without reading the key first.
type Guard struct {
	Key string
	// Leased limits the guard to commits that write a key under a session.
	Leased bool
	// Explain returns the error of a commit that fails because the key exists.
	Explain func(kv store.KV) error
}

// New returns a Space of all keys of the store. Closing the Space also closes the store.
//
// isOwn reports whether almost all writes of a key come from this process. Updates remember such keys instead
// of reading them again. If isOwn is nil, they remember no keys. A guard does not apply to an update that
// reads the guard's key.
func New(st store.Store, isOwn func(key string) bool, guards ...Guard) *Space {
	s := &Space{store: st, isOwn: isOwn, guards: guards}
	s.memory.Store(&memory{})
	return s
}

// Open opens the keys below the prefix, such as "/neco/", in the store at the URL. If an etcd URL names a
// prefix, Open uses that prefix instead. It never creates a store: it returns ErrNoStore if there is none.
func Open(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Open)
}

// Create does what Open does, but creates the store if there is none.
func Create(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Create)
}

// open opens the store at the URL with openStore. The Space has the keys below the prefix, or below the
// prefix in an etcd URL that names one.
func open(
	ctx context.Context,
	url, prefix string,
	openStore func(ctx context.Context, url string) (store.Store, error),
) (*Space, error) {
	url, mustAddPrefix := storeurl.WithPrefix(url, prefix)
	st, err := openStore(ctx, url)
	if err != nil {
		return nil, err
	}

	// Only an etcd URL carries the prefix to the store.
	if mustAddPrefix {
		st = &prefixed{Store: st, prefix: prefix}
	}
	return New(st, nil), nil // nil: no key counts as the process's own
}

// Close ends the sessions and watchers of this Space and frees its store. It is idempotent.
func (s *Space) Close() error { return s.store.Close() }

// Advisories queries the store's servers once, and returns a warning for each fault that an operator must
// know about. It returns nil for a store in a file.
func (s *Space) Advisories(ctx context.Context) []string {
	if a, ok := s.store.(store.Adviser); ok {
		return a.Advisories(ctx)
	}
	return nil
}

// Health returns the state that each endpoint of the store reports. It returns nil for a store in a file.
func (s *Space) Health(ctx context.Context) map[string]string {
	if h, ok := s.store.(store.HealthReporter); ok {
		return h.Health(ctx)
	}
	return nil
}

// SweepStore makes the store remove data that it keeps beside the keys and no longer needs. Leaders call it
// every ten minutes or less often. A store in a file does not need it.
func (s *Space) SweepStore(ctx context.Context) error {
	if sweeper, ok := s.store.(store.Sweeper); ok {
		return sweeper.Sweep(ctx)
	}
	return nil
}

// Store returns the store, for callers that copy the whole store.
func (s *Space) Store() store.Store { return s.store }

// ReplaceEtcdMember does what storeurl.ReplaceEtcdMember does, for a store that Open opens.
func ReplaceEtcdMember(ctx context.Context, url, prefix, member, peer string) (initialCluster string, err error) {
	url, _ = storeurl.WithPrefix(url, prefix)
	return storeurl.ReplaceEtcdMember(ctx, url, member, peer)
}

// The kinds of refusal. Their messages name the entity; test for them with errors.Is.
var (
	// ErrNotFound is returned if an entity does not exist, or no longer exists.
	ErrNotFound = errors.New("not found")
	// ErrSessionLost is returned if the session's lease has ended, or if another process has taken over the
	// leadership that the update depends on. Nothing was written. The caller must begin a new session.
	ErrSessionLost = errors.New("session lost")
	// ErrClaimed is returned if a different place, or a running process, holds the claim.
	ErrClaimed = errors.New("claimed")
	// ErrClaimLost is returned if another holder has taken the claim. Nothing was written. The former holder
	// can no longer write, and must end.
	ErrClaimLost = errors.New("claim lost")
	// ErrRunning is returned if a program that must be stopped first still uses the store.
	ErrRunning = errors.New("still runs")
)

// The store's own errors that functions of this package return; see state/store.
var (
	ErrAway        = store.ErrAway
	ErrStoreGone   = store.ErrStoreGone
	ErrHistoryLost = store.ErrHistoryLost
	ErrNoStore     = store.ErrNoStore
	ErrStoreExists = store.ErrExists
	ErrTooLarge    = store.ErrTooLarge
	ErrClosed      = store.ErrClosed
	ErrConflict    = store.ErrConflict
	ErrDenied      = store.ErrDenied
)

// Replaced is the error of a store that was replaced while it was open. It wraps ErrStoreGone.
type Replaced = store.Replaced

// refusal is an error with a message of its own that wraps one of the kinds of refusal.
type refusal struct {
	kind    error
	message string
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return r.kind }

// Refuse returns an error that wraps kind. Its text is only the formatted message, without the text of kind.
func Refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
