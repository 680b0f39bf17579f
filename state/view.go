package state

import (
	"context"
	"errors"
	"slices"

	"bijou/state/keyspace"
	"bijou/state/progress"
)

// View reads the environment as it was at one revision. It is short-lived, for one goroutine, and
// must not outlive the call that it was handed to: using it afterwards panics.
type View struct{ keys *keyspace.View }

// Tx is one run of an Update: a View whose reads see its own writes, and become
// conditions of the commit.
type Tx struct {
	*View
	keys *keyspace.Tx
}

// Updater commits a function's writes, as State.Update does, perhaps under further
// conditions: Claim.UpdaterFor and Leadership.Update are such.
type Updater func(ctx context.Context, f func(tx *Tx) error) error

// View is keyspace.Space.View, of entities: f may be run more than once, and does nothing but read.
func (s *State) View(ctx context.Context, f func(v *View) error) (err error) {
	return s.Space.View(ctx, func(keys *keyspace.View) error { return f(&View{keys}) })
}

// Update is keyspace.Space.Update, of entities: what f writes is committed only if nothing
// that it read has changed meanwhile; else f is run again from the start. ErrTooLarge.
func (s *State) Update(ctx context.Context, f func(tx *Tx) error) error {
	return s.Space.Update(ctx, onKeys(f))
}

// onKeys makes a change of the environment one of its keys.
func onKeys(f func(tx *Tx) error) func(keys *keyspace.Tx) error {
	return func(keys *keyspace.Tx) error { return f(&Tx{View: &View{keys.View}, keys: keys}) }
}

// Read returns the result of f in a View of its own.
func Read[T any](ctx context.Context, s *State, f func(v *View) (T, error)) (result T, err error) {
	err = s.View(ctx, func(v *View) (err error) {
		result, err = f(v)
		return err
	})
	return result, err
}

// readBelow calls take with each record below the prefix, by key.
func readBelow[T any](v *View, prefix string, take func(key string, record T)) error {
	kvs, err := v.keys.List(prefix)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		record, err := keyspace.Decode[T](kv)
		if err != nil {
			return err
		}
		take(kv.Key, record)
	}
	return nil
}

// Revision is the revision of all reads: a watch continues after it.
func (v *View) Revision() (int64, error) { return v.keys.Revision() }

// Writes are the changes that one run of an Update is going to commit: whoever commits
// them need not read them again.
type Writes struct{ changes []keyspace.Change }

// Writes returns what was written so far. It is valid once the Update has succeeded.
func (tx *Tx) Writes() Writes { return Writes{tx.keys.Writes()} }

// Keys lists the keys that were written or removed.
func (w Writes) Keys() (keys []string) {
	for _, c := range w.changes {
		keys = append(keys, c.Key)
	}
	return keys
}

// batchSize is small, since to end a relation costs up to a dozen operations of a transaction.
const batchSize = 10

// inBatches calls f for each item, batchSize to a transaction. Items that are gone
// meanwhile are no error.
func inBatches[T any](ctx context.Context, update Updater, items []T, f func(tx *Tx, item T) error) error {
	for batch := range slices.Chunk(items, batchSize) {
		err := update(ctx, func(tx *Tx) error {
			for _, item := range batch {
				if err := f(tx, item); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// addInBatches adds n entities, batchSize to a transaction. On an error it returns those
// that were added.
func addInBatches[T any](ctx context.Context, update Updater, n int, add func(tx *Tx) (T, error)) ([]T, error) {
	var all []T
	for len(all) < n {
		var batch []T
		err := update(ctx, func(tx *Tx) error {
			batch = nil
			for range min(batchSize, n-len(all)) {
				one, err := add(tx)
				if err != nil {
					return err
				}
				batch = append(batch, one)
			}
			return nil
		})
		if err != nil {
			return all, err
		}
		all = append(all, batch...)
	}
	return all, nil
}

// withProgress returns an Updater whose every commit counts as batchSize steps.
func withProgress(ctx context.Context, update Updater, p progress.Steps) Updater {
	progress.Report(ctx, p)
	return func(ctx context.Context, f func(tx *Tx) error) error {
		if err := update(ctx, f); err != nil {
			return err
		}
		p.Done = min(p.Done+batchSize, p.Total)
		progress.Report(ctx, p)
		return nil
	}
}
