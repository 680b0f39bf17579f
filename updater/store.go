// Package updater is what all sides of an update of boot servers share: its keys in the store,
// how they are opened, read, followed and changed, and their backup. Packages leader and worker
// decide and act on them; operators' commands read and write them. It decides nothing, and
// imports neither side.
//
// Boot servers are brought to a new release in lock-step. The promises, which hold whatever is
// killed, cut off or late:
//
//   - no server runs a step before all servers of the request have come to it;
//   - a step is run by workers of the request's version only;
//   - of a rolling component, at most one server's member is down for an update;
//   - once a request is stopped, no worker that hears of it begins a step;
//   - each attempt at a request ends in exactly one report.
package updater

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// ErrNoReceiver means that no place for alerts is configured.
var ErrNoReceiver = errors.New("no place for alerts is configured")

// ErrNotInitialised is the error of OpenStore where InitStore was not called.
var ErrNotInitialised = errors.New("the store was not initialised")

// formatNumber is the format of the keys, in keys.Format.
const formatNumber = 1

// OpenStore opens the updater's keys at the URL. It returns ErrNotInitialised if there
// are none, and an error if they have another format.
func OpenStore(ctx context.Context, url string) (*keyspace.Space, error) {
	space, err := keyspace.Open(ctx, url, keys.DefaultPrefix)
	if errors.Is(err, keyspace.ErrNoStore) {
		return nil, fmt.Errorf("cannot open %q: %w", url, ErrNotInitialised)
	}
	if err != nil {
		return nil, err
	}
	if err := space.View(ctx, checkFormat); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open %q: %w", url, err), space.Close())
	}
	return space, nil
}

func checkFormat(v *keyspace.View) error {
	found, err := ReadKey[int](v, keys.Format)
	switch {
	case err != nil:
		return err
	case found == nil:
		return ErrNotInitialised
	case *found != formatNumber:
		return fmt.Errorf("its format is %d, and this neco knows %d only", *found, formatNumber)
	}
	return nil
}

// InitStore creates the updater's keys at the URL, and the store if there is none; made
// is false if they were there.
func InitStore(ctx context.Context, url string) (made bool, err error) {
	space, err := keyspace.Create(ctx, url, keys.DefaultPrefix)
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, space.Close()) }()
	err = space.Update(ctx, func(tx *keyspace.Tx) error {
		made = false
		if err := checkFormat(tx.View); !errors.Is(err, ErrNotInitialised) {
			return err
		}
		made = true
		return tx.Put(keys.Format, formatNumber)
	})
	return made, err
}

// RetryInterval is how long whatever failed is left alone.
const RetryInterval = time.Second

// ShutdownTimeout bounds what a process that is told to end still does, also with a store
// that does not answer.
const ShutdownTimeout = 5 * time.Second

// AwaitRetry waits a moment after a fault of the store's, or returns one that no retry helps.
func AwaitRetry(ctx context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case IsStoreGone(err):
		return err
	}
	slog.Warn("the store does not answer as it should; trying again", "error", err)
	_ = backoff.Sleep(ctx, RetryInterval)
	return ctx.Err()
}

// IsStoreGone reports whether no retry helps, since the store was deleted or closed.
func IsStoreGone(err error) bool {
	return errors.Is(err, keyspace.ErrStoreGone) || errors.Is(err, keyspace.ErrClosed)
}

// LoadConfig reads the configuration.
func LoadConfig(v *keyspace.View) (record.Config, error) {
	kvs, err := v.List(keys.AllConfig)
	stored := map[string]json.RawMessage{}
	for _, kv := range kvs {
		stored[strings.TrimPrefix(kv.Key, keys.AllConfig)] = kv.Value
	}
	return record.ReadConfig(stored), err
}

// LoadRequest reads the update that runs or ran last; nil if there is none.
func LoadRequest(v *keyspace.View) (*record.Request, error) {
	return ReadKey[record.Request](v, keys.Current)
}

// LoadWorkers reads all workers' records.
func LoadWorkers(v *keyspace.View) (map[int]record.Status, error) {
	kvs, err := v.List(keys.Workers)
	if err != nil {
		return nil, err
	}
	return DecodeByLRN[record.Status](kvs, keys.Workers)
}

// PeekServers reads what workers say of themselves below the prefix, by boot server. No
// commit is conditional on it.
func PeekServers[T any](v *keyspace.View, prefix string) (map[int]T, error) {
	kvs, err := v.ListUnguarded(prefix)
	if err != nil {
		return nil, err
	}
	return DecodeByLRN[T](kvs, prefix)
}

// ReadKey reads one key; nil if it is absent.
func ReadKey[T any](v *keyspace.View, key string) (*T, error) {
	doc, ok, err := keyspace.Load[T](v, key)
	if !ok {
		return nil, err
	}
	return &doc, nil
}

// DecodeByLRN returns what was read below the prefix, by boot server.
func DecodeByLRN[T any](kvs []keyspace.KeyValue, prefix string) (map[int]T, error) {
	found := map[int]T{}
	for _, kv := range kvs {
		lrn, ok := record.ParseServerKey(prefix, kv.Key)
		if !ok {
			continue
		}
		doc, err := keyspace.Decode[T](kv)
		if err != nil {
			return nil, err
		}
		found[lrn] = doc
	}
	return found, nil
}

// Proven reports whether the version that workers have installed in the place of their
// servers' programs has shown that it works. A process that is to go over to it asks
// after it has found it there: the request for which it was installed was there before.
func Proven(ctx context.Context, s *keyspace.Space) (bool, error) {
	return keyspace.Read(ctx, s, func(v *keyspace.View) (bool, error) {
		r, err := LoadRequest(v)
		if err != nil {
			return false, err
		}
		recovery, err := ReadKey[record.Recovery](v, keys.Recovery)
		if err != nil {
			return false, err
		}
		gate, err := keyspace.LoadOrZero[record.Gate](v, keys.Gate)
		if err != nil {
			return false, err
		}
		return record.IsProven(r, gate, recovery), nil
	})
}

// ChangeFeed collects changes below some prefixes until its owner takes them: for owners
// that cache what they have read, and follow the changes.
type ChangeFeed struct {
	*keyspace.Feed
	store    *keyspace.Space
	prefixes []string
}

// NewChangeFeed returns one of the prefixes, which collects as long as it runs.
func NewChangeFeed(s *keyspace.Space, prefixes ...string) *ChangeFeed {
	return &ChangeFeed{keyspace.NewFeed(), s, prefixes}
}

// Run watches until ctx is done. A watcher that ended, or was behind a compaction of the
// store, is replaced, and everything counts as changed.
func (f *ChangeFeed) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		err := f.watch(ctx)
		if ctx.Err() == nil && !errors.Is(err, keyspace.ErrHistoryLost) {
			if err := AwaitRetry(ctx, err); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f *ChangeFeed) watch(ctx context.Context) error {
	revision, err := keyspace.Read(ctx, f.store, (*keyspace.View).Revision)
	if err != nil {
		return err
	}
	w, err := f.store.Watch(ctx, revision, keyspace.Below(f.prefixes...))
	if err != nil {
		return err
	}
	defer w.Close()
	f.Invalidate()
	return f.Collect(ctx, w)
}

// Change is one key to write; a nil Value removes it. All changes of one decision are one
// transaction, conditional on all that the decision was made on.
type Change struct {
	Key   string
	Value any
}

// Put returns the change that writes the key.
func Put(key string, value any) Change { return Change{Key: key, Value: value} }

// Remove returns the change that removes the key.
func Remove(key string) Change { return Change{Key: key} }

// Replace returns the changes that write the key in the place of whatever is there: nothing of that
// is carried over, as an operator's new wish has nothing of an earlier one.
func Replace(key string, value any) []Change { return []Change{Remove(key), Put(key, value)} }

// Apply puts a decision's changes into a transaction.
func Apply(tx *keyspace.Tx, changes []Change) error {
	for _, c := range changes {
		if err := tx.PutOrRemove(c.Key, c.Value, c.Value != nil); err != nil {
			return err
		}
	}
	return nil
}

// Audit records what somebody does, in the transaction that does it.
func Audit(tx *keyspace.Tx, a record.Audit) error {
	last, _, err := keyspace.Load[int](tx, keys.AuditCounter)
	if err != nil {
		return err
	}
	a.ID, a.At = last+1, time.Now().UTC()
	if err := tx.Put(keys.AuditCounter, a.ID); err != nil {
		return err
	}
	return tx.Put(keys.Audit(a.ID), a)
}
