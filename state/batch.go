package state

import (
	"context"
	"errors"

	"bijou/state/progress"
)

// batchSize is small, since to end a relation costs up to a dozen operations of a
// transaction.
const batchSize = 10

// inBatches calls f for each item, batchSize to a transaction. Items that are gone
// meanwhile are no error.
func inBatches[T any](ctx context.Context, update Updater, items []T, f func(tx *Tx, item T) error) error {
	for len(items) > 0 {
		n := min(batchSize, len(items))
		err := update(ctx, func(tx *Tx) error {
			for _, item := range items[:n] {
				if err := f(tx, item); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		items = items[n:]
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
