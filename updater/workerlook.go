package updater

import (
	"context"
	"slices"

	"bijou/state"
	"bijou/updater/record"
)

// look reads all workers' records. While one that was late is late still, that is
// enough to know: N workers that wait for one do not read N records each, again and
// again. Who has waited for too long is to say for whom, and reads them all.
func (w *worker) look(ctx context.Context) error {
	waits, err := w.waits(ctx)
	if err == nil && !waits {
		err = w.lookAtAll(ctx)
	}
	w.seat.LookedAt = w.clock.now()
	return err
}

// waits tells if one that was late has not come yet.
func (w *worker) waits(ctx context.Context) (yes bool, err error) {
	r, s := w.seat.Current, w.seat.Status
	expired := !w.clock.now().Before(s.At.Add(w.seat.Timeout))
	if expired || len(w.late) == 0 || !slices.Contains(r.Servers, w.late[0]) {
		return false, nil
	}
	var other *record.Status
	err = persist(ctx, func() error {
		return w.o.Store.View(ctx, func(v *state.KeyView) (err error) {
			other, err = LoadWorker(v, w.late[0])
			return err
		})
	})
	return other == nil || !other.For(*r) || !other.Reached(s.Step), err
}

// lookAtAll reads the request and all records.
func (w *worker) lookAtAll(ctx context.Context) error {
	err := persist(ctx, func() error {
		return w.o.Store.View(ctx, func(v *state.KeyView) (err error) {
			if w.seat.Current, err = LoadRequest(v); err != nil {
				return err
			}
			if w.seat.All, err = LoadWorkers(v); err != nil {
				return err
			}
			return w.recall(v)
		})
	})
	if w.late = nil; err == nil && w.seat.Current != nil && w.seat.Status != nil {
		w.late, _ = w.seat.late()
	}
	return err
}
