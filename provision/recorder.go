package provision

import (
	"context"
	"errors"

	"bijou/state"
)

// maxBatch limits how many machines one transaction records.
const maxBatch = 64

// recorder writes what jobs have found out. What several have at the same time is one transaction.
type recorder struct {
	update  state.Updater // fenced by the leader's key
	entries chan entry    // with room for a batch, so that it fills while one is written
}

// entry is one job's write.
type entry struct {
	write func(tx *state.Tx) error
	done  chan error // buffered: whoever waited may have gone
}

func newRecorder(update state.Updater) *recorder {
	return &recorder{update, make(chan entry, maxBatch)}
}

// record blocks until it is written, or ctx is done. A machine that is gone meanwhile is no error.
// It may be called from several goroutines.
func (r *recorder) record(ctx context.Context, write func(tx *state.Tx) error) error {
	e := entry{write, make(chan error, 1)}
	select {
	case r.entries <- e:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case first := <-r.entries:
			r.writeBatch(ctx, r.collectBatch(first))
		case <-ctx.Done():
			return
		}
	}
}

func (r *recorder) collectBatch(first entry) []entry {
	batch := []entry{first}
	for len(batch) < maxBatch {
		select {
		case e := <-r.entries:
			batch = append(batch, e)
		default:
			return batch
		}
	}
	return batch
}

// Where the batch fails each entry is written by itself: one that cannot be written must not keep
// the others.
func (r *recorder) writeBatch(ctx context.Context, batch []entry) {
	err := r.commit(ctx, batch)
	for _, e := range batch {
		if err != nil && len(batch) > 1 {
			e.done <- r.commit(ctx, []entry{e})
			continue
		}
		e.done <- err
	}
}

func (r *recorder) commit(ctx context.Context, batch []entry) error {
	return r.update(ctx, func(tx *state.Tx) error {
		for _, e := range batch {
			if err := e.write(tx); err != nil && !errors.Is(err, state.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}
