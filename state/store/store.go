// Package store defines the interface of the key-value stores that hold all durable data, and the types and
// errors that the interface uses.
//
// It is not a store itself. Packages sqlite, etcd and remote implement stores, and package handle has the
// code that they share. testscripts/conformance/storetest states what each store must do. Users of a store
// must not rely on anything else.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state/secret"
)

// Store is one key-value store with revisions. Every commit creates one new revision, greater than all
// earlier revisions (not necessarily by one). All methods may be called from several goroutines, and by
// several processes on one store.
//
// A method that waits for the store returns ErrAway if the store does not answer for half a minute, or within the
// call's deadline. When the store is back, watchers continue automatically. A lease that could not be refreshed
// for its TTL is lost.
type Store interface {
	// Snapshot returns a snapshot. All its reads use one revision: the newest revision at the time of the
	// snapshot's first read. Opening a snapshot is cheap. The caller must close the snapshot soon.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Commit writes all operations as one revision if all conditions hold. The revision is durable when
	// Commit returns. After ErrConflict, ErrTooLarge, ErrLeaseLost or ErrDenied nothing was written. After
	// any other error, including ErrAway, it is unknown whether the operations were written, so callers must
	// only make commits that can be repeated. A transaction that changes nothing (without operations, or with
	// only deletions of absent keys) creates no revision, and Commit returns the newest revision.
	Commit(ctx context.Context, txn Txn) (revision int64, err error)

	// Watch returns a watcher of every commit after the given revision that changes a key in the scope. It
	// delivers each commit once and in order, with all keys in the scope that the commit changed. Next
	// returns ErrHistoryLost if the store no longer has the history after the revision. Some stores, such as
	// etcd's, also return ErrHistoryLost if an older copy has replaced the store.
	Watch(ctx context.Context, after int64, scope Scope) (Watcher, error)

	// Lease grants a lease and keeps it alive until it is closed or lost, or the process exits. ctx limits
	// only the call itself. When a lease has ended, a commit removes the keys that were put under it.
	Lease(ctx context.Context, ttl time.Duration) (Lease, error)

	// Close ends the watchers and leases of this handle and frees the store. It is idempotent. Afterwards
	// every other method returns ErrClosed.
	Close() error
}

// HealthReporter is a store that has several endpoints.
type HealthReporter interface {
	// Health returns the state of each endpoint, in words, by the endpoint's address.
	Health(ctx context.Context) map[string]string
}

// SecretHolder is a store whose server seals and opens secrets for processes that do not have the keys.
type SecretHolder interface {
	// SecretKeeper returns the server's keeper, or nil if the server does not have one.
	SecretKeeper() secret.Keeper
}

// Adviser is a store whose servers may have faults that an operator must know about.
type Adviser interface {
	// Advisories queries the servers, and returns a warning for each fault. It ignores servers that do not
	// answer.
	Advisories(ctx context.Context) []string
}

// LeaseGranter is a store that grants leases for another process to keep alive.
type LeaseGranter interface {
	// GrantLease grants a lease that ends once nobody has refreshed it for the TTL.
	GrantLease(ctx context.Context, ttl time.Duration) (LeaseID, error)
	// RefreshLease refreshes a lease once, no matter which process it was granted to. It returns lives false
	// if the lease was lost.
	RefreshLease(ctx context.Context, id LeaseID) (lives bool, err error)
	// RevokeLease ends a lease and removes its keys immediately. It returns no error if the lease was lost.
	RevokeLease(ctx context.Context, id LeaseID) error
}

// Sweeper is a store that keeps additional keys, which record past changes, to check its conditions.
type Sweeper interface {
	// Sweep removes the additional keys that no condition needs any longer. The process that leads calls it
	// every ten minutes or less often. Several processes can call it at the same time.
	Sweep(ctx context.Context) error
}

// Snapshot reads at one fixed revision.
type Snapshot interface {
	// Get reads one key. It returns ok false if the key is absent.
	Get(ctx context.Context, key string) (kv KV, ok bool, err error)
	// List reads all keys with the prefix, sorted bytewise by key.
	List(ctx context.Context, prefix string) ([]KV, error)
	// Prefetch names the keys and the lists (by prefix) that are read next. A distant store fetches them in one
	// round trip, as far as it can. Other stores do nothing.
	Prefetch(ctx context.Context, next Scope) error
	// Revision returns the revision of the snapshot's reads. If nothing was read before, the call counts as the
	// snapshot's first read.
	Revision(ctx context.Context) (int64, error)
	Close()
}

// KV is one key with its value and the revision of the commit that wrote it.
type KV struct {
	Key      string
	Value    []byte
	Revision int64
}

// Txn is a conditional transaction. Keys and values are any bytes, but no key may be empty or occur in two
// operations.
type Txn struct {
	Conds []Cond
	Ops   []Op
}

// Cond is one condition. If Key is set, the condition is that the key's revision is Revision, where 0 means
// that the key is absent. Otherwise the condition is that no key with the prefix Prefix was put or deleted
// after Revision. The empty prefix covers all keys. If the store no longer knows whether a prefix has changed,
// the condition does not hold.
type Cond struct {
	Key      string
	Prefix   string
	Revision int64
}

// Op puts or deletes one key. Deleting an absent key succeeds and causes no event.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	// Lease is the lease that the key belongs to from now on, or 0 for no lease.
	Lease LeaseID
	// Quiet allows the store to hide the operation from watchers and from conditions on prefixes. Only writes
	// of blobs use it.
	Quiet bool
}

// LeaseID is a lease's number in the store. 0 is not a lease.
type LeaseID int64

// Scope is a set of keys: the Keys, and all keys with one of the Prefixes. The empty prefix covers all keys.
type Scope struct {
	Keys     []string
	Prefixes []string
}

// Below returns the scope of all keys with one of the prefixes.
func Below(prefixes ...string) Scope { return Scope{Prefixes: prefixes} }

// Exactly returns the scope of only these keys, without keys that begin with one of them.
func Exactly(keys ...string) Scope { return Scope{Keys: keys} }

// Has reports whether the key is in the scope.
func (s Scope) Has(key string) bool {
	under := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return slices.Contains(s.Keys, key) || slices.ContainsFunc(s.Prefixes, under)
}

// Batch has the events of one commit in a watcher's scope: each key once, in any order.
type Batch struct {
	Revision int64
	Events   []Event
}

// Event is one key that was put or deleted. Value is the value that was put, if the store sends values with
// events, as etcd's store does. Receivers must not change Value. If Value is empty after a put, the value is
// unknown, and the receiver must read the key in a new snapshot.
type Event struct {
	Key     string
	Deleted bool
	Value   []byte
}

// Watcher yields batches in order.
type Watcher interface {
	// Next blocks until there is a batch. It returns ErrHistoryLost if events are missing. The caller then must
	// take a new snapshot and watch from its revision. Its other errors are ErrStoreGone, ErrClosed and those
	// of ctx. After an error that does not come from ctx, the watcher is finished.
	Next(ctx context.Context) (Batch, error)
	Close()
}

// Lease shows other processes that this process is running.
type Lease interface {
	ID() LeaseID
	// Done returns a channel that is closed once the lease is lost or closed. The channel is also closed if, by
	// this process's monotonic clock, the lease was not refreshed for its TTL, since the store can then end the
	// lease.
	Done() <-chan struct{}
	// Close revokes the lease and removes its keys immediately. It is idempotent, and returns no error if the
	// lease was lost.
	Close(ctx context.Context) error
}

// The errors that all stores have in common. Test for them with errors.Is, since stores wrap them in errors
// with more text.
var (
	// ErrConflict is returned if a condition of the transaction does not hold. Nothing was written.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge is returned if the transaction exceeds a limit. Nothing was written.
	ErrTooLarge = errors.New("transaction too large")
	// ErrHistoryLost is returned if the revision is older than the history that the store keeps. The caller
	// must take a new snapshot.
	ErrHistoryLost = errors.New("revision compacted")
	// ErrAway is returned if the store does not answer now: none of its servers can be reached, or another
	// process keeps it locked. The same call can succeed later.
	ErrAway = errors.New("store is away")
	// ErrStoreGone is returned if the store was deleted or replaced while it was open. It does not come back.
	ErrStoreGone = errors.New("store is gone")
	// ErrNoStore is returned by Open if the URL does not lead to a store.
	ErrNoStore = errors.New("no store")
	// ErrExists is returned by Create if the URL already leads to a store.
	ErrExists = errors.New("store already exists")
	// ErrLeaseLost is returned if the lease of an operation has ended. Nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrDenied is returned if the caller does not have the right to the operation. Nothing was written.
	ErrDenied = errors.New("permission denied")
	// ErrClosed is returned if this process has closed the store, snapshot or watcher.
	ErrClosed = errors.New("closed")
)

// Replaced is an error that wraps ErrStoreGone. Stores return it if their files or content were replaced while
// a process had the store open. Nobody can open the store until an operator has removed the files in Remove.
type Replaced struct {
	What   string   // a sentence that says which file or content was replaced
	Remove []string // the files that an operator must remove to use the store with its current content
}

func (r *Replaced) Error() string { return r.What + ": " + ErrStoreGone.Error() }

// Unwrap returns ErrStoreGone.
func (r *Replaced) Unwrap() error { return ErrStoreGone }

// Hint returns advice for the operator: to restore a backup or remove the files.
func (r *Replaced) Hint() string {
	return "end every process that uses the store; then restore a backup in its place, or continue with its present content: rm -f " +
		strings.Join(r.Remove, " ")
}

// AwayError returns an error whose text is why. The error wraps ErrAway and cause.
func AwayError(why string, cause error) error { return &away{why, cause} }

// OverdueError returns the error of a call whose context ended while the call waited for the store. If ctx's
// deadline has passed, the error has the text why, and wraps both ErrAway and ctx's error. Otherwise it is
// ctx's error.
func OverdueError(ctx context.Context, why string) error {
	if err := ctx.Err(); !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return AwayError(why, ctx.Err())
}

type away struct {
	why   string
	cause error
}

func (a *away) Error() string   { return a.why }
func (a *away) Unwrap() []error { return []error{ErrAway, a.cause} }

// Limits of one transaction, the same for every store. They follow from etcd's defaults: 128 conditions or
// operations at each level of nested transactions, and 1.5 MiB per request. They suffice for changes that
// must become visible together, such as all settings that a hook has set in many relations. Jobs without a
// fixed size must work in idempotent batches.
const (
	MaxConds = 512     // conditions
	MaxOps   = 512     // operations
	MaxBytes = 1 << 20 // sum of the operations' keys and values, in bytes
)

// Size returns the sum of the operations' keys and values, in bytes.
func (t Txn) Size() (n int) {
	for _, o := range t.Ops {
		n += len(o.Key) + len(o.Value)
	}
	return n
}

// Check returns ErrTooLarge if the transaction exceeds a limit. It returns a different error if an operation's
// key is empty or occurs in two operations. The stores' Commit calls it before it writes anything.
func (t Txn) Check() error {
	if size := t.Size(); len(t.Conds) > MaxConds || len(t.Ops) > MaxOps || size > MaxBytes {
		err := fmt.Errorf("%w: it has %d conditions, %d operations and %d bytes; the limits are %d, %d and %d",
			ErrTooLarge, len(t.Conds), len(t.Ops), size, MaxConds, MaxOps, MaxBytes)
		if size <= MaxBytes {
			return err
		}

		// The largest value is probably the reason, so name its key.
		largest := slices.MaxFunc(t.Ops, func(a, b Op) int { return cmp.Compare(len(a.Value), len(b.Value)) })
		return fmt.Errorf("%w; the largest value is that of %q, with %d bytes", err, largest.Key, len(largest.Value))
	}

	seen := make(map[string]bool, len(t.Ops))
	for _, o := range t.Ops {
		if o.Key == "" || seen[o.Key] {
			return fmt.Errorf("cannot commit: key %q is empty or occurs in two operations", o.Key)
		}
		seen[o.Key] = true
	}

	return nil
}
