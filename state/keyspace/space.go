// Package keyspace is the key-value layer: views at one revision, updates that are
// conditional on all that they read, watches, sessions, leaderships, claims and blobs,
// over any of the stores. Values are JSON.
//
// It knows no entity. Package state builds the environment on it, the updater its records;
// they give each key its meaning.
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

// Space holds the keys of one store, or those below a prefix. Its methods may be called
// from several goroutines.
type Space struct {
	store  store.Store
	guards []Guard
	isOwn  func(key string) bool
	memory atomic.Pointer[memory]

	// Metrics has how long the store takes, and what its users measure. It is set before the space is
	// shared; nil: nothing is measured.
	Metrics *metrics.Registry

	// Progress is told how far a long job is: before its first step, and after each. A job is over with the
	// report whose Done is Total, or when it returns. The reports come one after another. Progress must be
	// set before the space is shared.
	Progress Progress

	// Damaged is told of each record that a list has passed over since it does not decode, once for each key.
	// It is set before the space is shared; nil: the default logger is told.
	Damaged  func(err error)
	reported sync.Map // the keys of which Damaged was told
}

// Progress takes reports of how far a long job is. A nil Progress takes none.
type Progress func(Steps)

// Report passes the steps of a job on. A job of no steps is not reported.
func (p Progress) Report(steps Steps) {
	if p != nil && steps.Total > 0 {
		p(steps)
	}
}

// Steps counts the steps of a long job.
type Steps struct {
	What        string // what is counted: "units of mysql added"
	Done, Total int
}

// Guard makes commits conditional on a key being absent. It costs them nothing but the comparison.
type Guard struct {
	Key string
	// Leased restricts it to commits that write a key under a session.
	Leased bool
	// Explain returns the error of a commit that has met the key.
	Explain func(kv store.KV) error
}

// New returns the keys of a store, which Close closes. Own keys are those that hardly anybody but this
// process writes, nil for none: its updates read them once. An update that reads a guard's key itself is not held
// by that guard.
func New(st store.Store, isOwn func(key string) bool, guards ...Guard) *Space {
	s := &Space{store: st, isOwn: isOwn, guards: guards}
	s.memory.Store(&memory{})
	return s
}

// Open opens the keys below the prefix ("/neco/") of the store at the URL. An etcd URL may
// name another prefix. It never creates a store: ErrNoStore.
func Open(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Open)
}

// Create is Open, but makes the store if there is none.
func Create(ctx context.Context, url, prefix string) (*Space, error) {
	return open(ctx, url, prefix, storeurl.Create)
}

// open opens the store at the URL by the function opened. Keys are below the prefix if the URL has none of
// its own.
func open(
	ctx context.Context,
	url, prefix string,
	opened func(ctx context.Context, url string) (store.Store, error),
) (*Space, error) {
	url, below := storeurl.WithPrefix(url, prefix)
	st, err := opened(ctx, url)
	if err != nil {
		return nil, err
	}

	if below {
		st = &prefixed{Store: st, prefix: prefix}
	}
	return New(st, nil), nil
}

// Close ends the sessions and watchers of this Space and frees its store. It is idempotent.
func (s *Space) Close() error { return s.store.Close() }

// Advisories asks the store's servers once, and returns a warning for each fault of theirs that an
// operator must know; nil for a store in a file.
func (s *Space) Advisories(ctx context.Context) []string {
	if a, ok := s.store.(store.Adviser); ok {
		return a.Advisories(ctx)
	}
	return nil
}

// Health returns how each of the store's endpoints is, as it reports; nil for a store in a file.
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

// Store returns the store itself, for callers that copy it whole.
func (s *Space) Store() store.Store { return s.store }

// ReplaceEtcdMember does what storeurl.ReplaceEtcdMember does, for a store that Open opens.
func ReplaceEtcdMember(ctx context.Context, url, prefix, member, peer string) (initialCluster string, err error) {
	url, _ = storeurl.WithPrefix(url, prefix)
	return storeurl.ReplaceEtcdMember(ctx, url, member, peer)
}

// The kinds of refusal. Their messages name the entity; test for them with errors.Is.
var (
	// ErrNotFound: there is no such entity (any more).
	ErrNotFound = errors.New("not found")
	// ErrSessionLost: the session's lease ended, or another process took over what the update
	// depended on (the leadership). Nothing was written. The answer is a new session.
	ErrSessionLost = errors.New("session lost")
	// ErrClaimed: another place, or a process that lives, holds the claim.
	ErrClaimed = errors.New("claimed")
	// ErrClaimLost: another holder has taken the claim. Nothing was written, and
	// nothing will be: who held it ends.
	ErrClaimLost = errors.New("claim lost")
	// ErrRunning: somebody is at work, and must not be.
	ErrRunning = errors.New("still runs")
)

// The store's own errors that users of this package meet; see state/store.
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

// Replaced is a store that was replaced while it was open; it is an ErrStoreGone.
type Replaced = store.Replaced

type refusal struct {
	kind    error
	message string
}

func (r *refusal) Error() string { return r.message }
func (r *refusal) Unwrap() error { return r.kind }

// Refuse returns an error with its own message that errors.Is takes for kind.
func Refuse(kind error, format string, args ...any) error {
	return &refusal{kind, fmt.Sprintf(format, args...)}
}
