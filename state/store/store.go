// Package store is the interface of the key-value stores that hold everything durable,
// and the types that cross it.
//
// It is not a store itself: sqlite, etcd and mem lie below it, and testscripts/conformance/storetest
// states what each of them must do (nothing else may be relied on). What two of them do
// alike is in opener. Only they and package state import it.
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

// Store is one key-value store with revisions. Every commit makes one new
// revision, greater than all before (not necessarily by one). All methods may
// be called from several goroutines, and by several processes on one store.
//
// A method that has to wait for the store returns ErrAway if that does not answer for
// half a minute, or within the call's deadline. Watchers go on by themselves when
// it is back; leases that could not be refreshed for their TTL are done.
type Store interface {
	// Snapshot opens reads at one revision: the newest at the time of its
	// first read. It is cheap, short-lived and must be closed.
	Snapshot(ctx context.Context) (Snapshot, error)

	// Commit writes all operations if all conditions hold, as one revision, durable when it
	// returns. ErrConflict, ErrTooLarge, ErrLeaseLost: nothing was written. On another error,
	// ErrAway too, it is unknown whether it was written, so callers make commits that can be
	// repeated. A transaction that changes nothing (no operations, or deletions of absent keys
	// only) makes no revision and returns the newest.
	Commit(ctx context.Context, txn Txn) (revision int64, err error)

	// Watch delivers every commit after the given revision that touches a key of the scope, whole and
	// in order, each once. It delivers no other key. Next returns ErrHistoryLost if the store has trimmed
	// the revision, and once an older copy of the store has taken its place, where the store notices
	// that, as etcd's does.
	Watch(ctx context.Context, after int64, scope Scope) (Watcher, error)

	// Lease grants a lease and keeps it alive until it is closed, is lost, or
	// the process ends; ctx bounds the call only. Keys put under a lease
	// vanish (as a commit that watchers see) once it has ended.
	Lease(ctx context.Context, ttl time.Duration) (Lease, error)

	// Close ends the watchers and leases of this handle and frees the store. It is
	// idempotent; every other method returns ErrClosed after it.
	Close() error
}

// HealthReporter is a store that has endpoints, and knows how each of them is.
type HealthReporter interface {
	Health(ctx context.Context) map[string]string
}

// SecretHolder is a store whose server has the keys that seal secrets, for processes that do not have them.
type SecretHolder interface {
	SecretKeeper() secret.Keeper // nil: there is none
}

// Adviser is a store whose servers can have faults that an operator must know.
type Adviser interface {
	// Advisories asks the servers, and returns a warning for each fault. An error is none.
	Advisories(ctx context.Context) []string
}

// LeaseGranter is a store that grants leases for another process to keep alive.
type LeaseGranter interface {
	// GrantLease grants a lease that ends once nobody has refreshed it for the TTL.
	GrantLease(ctx context.Context, ttl time.Duration) (LeaseID, error)
	// RefreshLease refreshes a lease once, whoever it was granted to. lives is false if it was lost.
	RefreshLease(ctx context.Context, id LeaseID) (lives bool, err error)
	// RevokeLease ends a lease: its keys vanish at once. It is no error on a lease that is lost.
	RevokeLease(ctx context.Context, id LeaseID) error
}

// Sweeper is a store that keeps beside the keys what its conditions need of the past.
type Sweeper interface {
	// Sweep removes what no condition needs any more. The process that leads calls it, every ten
	// minutes or less often. What several do at the same time does no harm.
	Sweep(ctx context.Context) error
}

// Snapshot reads at one fixed revision.
type Snapshot interface {
	// Get reads one key; ok is false if it is absent.
	Get(ctx context.Context, key string) (kv KV, ok bool, err error)
	// List reads all keys with the prefix, sorted bytewise by key.
	List(ctx context.Context, prefix string) ([]KV, error)
	// Prefetch says which keys are read next. A store that is far away brings them in one
	// round trip; to others it means nothing.
	Prefetch(ctx context.Context, keys ...string) error
	// Revision returns the snapshot's revision. It reads if nothing was read yet.
	Revision(ctx context.Context) (int64, error)
	Close()
}

// KV is one key with its value and the revision of the commit that wrote it.
type KV struct {
	Key      string
	Value    []byte
	Revision int64
}

// Txn is a conditional transaction. No key may be empty or occur in two
// operations; keys and values are any bytes.
type Txn struct {
	Conds []Cond
	Ops   []Op
}

// Cond is one condition: with Key set, that key's revision is Revision (0: it is absent); otherwise
// no key below Prefix (empty: no key at all) was put or deleted after Revision. If the store cannot
// tell any more whether a prefix changed, the condition does not hold.
type Cond struct {
	Key      string
	Prefix   string
	Revision int64
}

// Op puts or deletes one key. Deleting an absent key is no error and no event.
type Op struct {
	Key    string
	Value  []byte
	Delete bool
	Lease  LeaseID // 0: none. A put without a lease frees the key of its former one.
	Quiet  bool    // watchers need not be told (blobs); prefix conditions need not see it
}

// LeaseID names a lease in the store; 0 is none.
type LeaseID int64

// Scope names what a watcher watches: each of the Keys, and all keys with one of the Prefixes.
// The empty prefix is that of all keys.
type Scope struct {
	Keys     []string
	Prefixes []string
}

// Below returns the scope of all keys with one of the prefixes.
func Below(prefixes ...string) Scope { return Scope{Prefixes: prefixes} }

// Exactly returns the scope of these keys alone, without keys that begin with one of them.
func Exactly(keys ...string) Scope { return Scope{Keys: keys} }

// Has reports whether the key is in the scope.
func (s Scope) Has(key string) bool {
	under := func(prefix string) bool { return strings.HasPrefix(key, prefix) }
	return slices.Contains(s.Keys, key) || slices.ContainsFunc(s.Prefixes, under)
}

// Batch has the events of one commit in a watcher's scope: each key once, in no promised order.
type Batch struct {
	Revision int64
	Events   []Event
}

// Event is one key that was put or deleted. Value is what that commit put, if the store
// has it with the event, as etcd's has, and must not be changed. A put without one (of
// another store, or of no bytes) says nothing of the value: take a fresh snapshot.
type Event struct {
	Key     string
	Deleted bool
	Value   []byte
}

// Watcher yields batches in order.
type Watcher interface {
	// Next blocks until there is a batch. It returns ErrHistoryLost if events are missing: take a
	// fresh snapshot and watch from its revision. Other errors are ErrStoreGone, ErrClosed and the
	// context's. After an error other than the call's own context's the watcher is finished.
	Next(ctx context.Context) (Batch, error)
	Close()
}

// Lease shows others that this process lives.
type Lease interface {
	ID() LeaseID
	// Done is closed once the lease is lost or closed, or so long unrefreshed that others may take
	// it for lost (its TTL on this process's monotonic clock).
	Done() <-chan struct{}
	// Close revokes it: its keys vanish at once. It is idempotent, and no
	// error on a lease that is lost already.
	Close(ctx context.Context) error
}

// The errors that all stores have in common. Test with errors.Is: messages say more.
var (
	// ErrConflict: a condition of the transaction did not hold; nothing was written.
	ErrConflict = errors.New("conflict")
	// ErrTooLarge: the transaction is above one of the limits; nothing was written.
	ErrTooLarge = errors.New("transaction too large")
	// ErrHistoryLost: the revision is older than the history that the store keeps.
	// Take a fresh snapshot.
	ErrHistoryLost = errors.New("revision compacted")
	// ErrAway: the store does not answer now: nobody can be reached, or another
	// process keeps it locked. It may come back, and the same call then succeeds.
	ErrAway = errors.New("store is away")
	// ErrStoreGone: the store was deleted or replaced while it was open. It does not come back.
	ErrStoreGone = errors.New("store is gone")
	// ErrNoStore: there is no store at that place; Open never creates one.
	ErrNoStore = errors.New("no store")
	// ErrExists: Create found a store already there.
	ErrExists = errors.New("store exists already")
	// ErrLeaseLost: the lease named by an operation does not live any more; nothing was written.
	ErrLeaseLost = errors.New("lease lost")
	// ErrDenied: the caller has no right to do that; nothing was written.
	ErrDenied = errors.New("permission denied")
	// ErrClosed: the store, snapshot or watcher was closed on this side.
	ErrClosed = errors.New("closed")
)

// Replaced is the ErrStoreGone of a store whose files, or what they hold, were replaced while a
// process had it open. Nobody can open the store until the files in Remove are gone.
type Replaced struct {
	What   string   // what was found, in words
	Remove []string // the files to remove, to go on with what the store holds now
}

func (r *Replaced) Error() string { return r.What + ": " + ErrStoreGone.Error() }

// Unwrap returns ErrStoreGone.
func (r *Replaced) Unwrap() error { return ErrStoreGone }

// Hint returns the two ways on.
func (r *Replaced) Hint() string {
	return "end every process that uses the store; then put a backup in its place, or go on with what it holds now: rm -f " +
		strings.Join(r.Remove, " ")
}

// AwayError returns an error that is ErrAway and its cause, with why as its text.
func AwayError(why string, cause error) error { return &away{why, cause} }

// OverdueError returns the error of a call whose context ended while the call waited for the store. It is
// the context's error. If the deadline has passed, it is also ErrAway.
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

// Limits of one transaction, the same on every store. They follow from etcd's defaults: 128
// conditions or operations at each level of a transaction within a transaction, and 1.5 MiB a
// request. They are for what must be seen as one, as all that a hook has set in many relations;
// jobs without a bound go in idempotent batches.
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

// Check returns ErrTooLarge if the transaction is above a limit, and another error if a key
// is empty or occurs in two operations. Stores call it first in Commit.
func (t Txn) Check() error {
	if size := t.Size(); len(t.Conds) > MaxConds || len(t.Ops) > MaxOps || size > MaxBytes {
		err := fmt.Errorf("%w: it has %d conditions, %d operations and %d bytes, at most %d, %d and %d are possible",
			ErrTooLarge, len(t.Conds), len(t.Ops), size, MaxConds, MaxOps, MaxBytes)
		if size <= MaxBytes {
			return err
		}

		largest := slices.MaxFunc(t.Ops, func(a, b Op) int { return cmp.Compare(len(a.Value), len(b.Value)) })
		return fmt.Errorf("%w; the largest value is that of %q with %d bytes", err, largest.Key, len(largest.Value))
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
