package updater

import (
	"context"
	"slices"

	"bijou/state"
	"bijou/updater/record"
)

// look reads all workers' records, unless one of a few is late: that is enough to
// know, so that N workers that wait do not read N records each, again and again. Who
// has waited for too long is to say for whom, and reads them all.
func (w *worker) look(ctx context.Context) error {
	waits, err := w.waits(ctx)
	if err == nil && !waits {
		err = w.lookAtAll(ctx)
	}
	w.seat.LookedAt = w.clock.now()
	return err
}

// waits tells if one of the few has not come yet.
func (w *worker) waits(ctx context.Context) (yes bool, err error) {
	s := w.seat.Status
	if !w.clock.now().Before(s.At.Add(w.seat.Timeout)) {
		return false, nil
	}
	for _, lrn := range w.few() {
		var other *record.Status
		err = w.persist(ctx, func() error {
			return w.o.Store.View(ctx, func(v *state.KeyView) (err error) {
				other, err = LoadWorker(v, lrn)
				return err
			})
		})
		if err != nil {
			return false, err
		}
		if other == nil || !w.seat.reached(*other) {
			w.late = []int{lrn}
			return true, nil
		}
	}
	return false, nil
}

// fewAtMost is how many records are read before all.
const fewAtMost = 3

// few are those to look at first: one that was late, as long as it belongs to the
// request, or else the next few in the list, others for each worker.
func (w *worker) few() []int {
	all := w.seat.Current.Servers
	if len(w.late) > 0 && slices.Contains(all, w.late[0]) {
		return w.late[:1]
	}
	if len(all) <= 2*fewAtMost {
		return nil // it is as cheap to read all
	}
	own := slices.Index(all, w.o.LRN)
	next := append(slices.Clone(all[own+1:]), all[:max(own, 0)]...)
	return next[:fewAtMost]
}

// lookAtAll reads the request and all records.
func (w *worker) lookAtAll(ctx context.Context) error {
	var all map[int]record.Status
	err := w.persist(ctx, func() error {
		return w.o.Store.View(ctx, func(v *state.KeyView) (err error) {
			if w.seat.Current, err = LoadRequest(v); err != nil {
				return err
			}
			if all, err = LoadWorkers(v); err != nil {
				return err
			}
			return w.recall(v)
		})
	})
	w.seat.looked(all, w.clock.now())
	if w.late = nil; err == nil && w.seat.Current != nil && w.seat.Status != nil {
		w.late, _ = w.seat.late()
	}
	return err
}
