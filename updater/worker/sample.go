package worker

import (
	"context"
	"slices"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// lookAtWorkers reads the records of all workers, unless one of a small sample is late:
// that is enough to go on waiting, so that N waiting workers do not read N records each,
// again and again. A worker that has waited for too long reads all, to report for whom.
func (w *worker) lookAtWorkers(ctx context.Context) error {
	late, err := w.sampleIsLate(ctx)
	if err == nil && !late {
		err = w.readAllWorkers(ctx)
	}
	w.snapshot.LookedAt = w.clock.Now()
	return err
}

func (w *worker) sampleIsLate(ctx context.Context) (yes bool, err error) {
	s := w.snapshot.Status
	if !w.clock.Now().Before(s.At.Add(w.snapshot.Timeout)) {
		return false, nil
	}
	for _, lrn := range w.sampleServers() {
		var other *record.Status
		err = w.retryStore(ctx, func() (err error) {
			other, err = keyspace.Read(ctx, w.o.Store, func(v *keyspace.View) (*record.Status, error) {
				return updater.ReadKey[record.Status](v, keys.Worker(lrn))
			})
			return err
		})
		if err != nil {
			return false, err
		}
		if other == nil || !w.snapshot.hasReached(*other) {
			w.late = []int{lrn}
			return true, nil
		}
	}
	return false, nil
}

// maxSample is how many records are read before all.
const maxSample = 3

// sampleServers returns a server that was late before, as long as it is in the request,
// or else the next few in the list, which are others for each worker.
func (w *worker) sampleServers() []int {
	all := w.snapshot.Current.Servers
	if len(w.late) > 0 && slices.Contains(all, w.late[0]) {
		return w.late[:1]
	}
	if len(all) <= 2*maxSample {
		return nil // it is as cheap to read all
	}
	own := slices.Index(all, w.o.LRN)
	next := append(slices.Clone(all[own+1:]), all[:max(own, 0)]...)
	return next[:maxSample]
}

func (w *worker) readAllWorkers(ctx context.Context) error {
	var all map[int]record.Status
	err := w.retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			if w.snapshot.Current, err = updater.LoadRequest(v); err != nil {
				return err
			}
			if all, err = updater.LoadWorkers(v); err != nil {
				return err
			}
			return w.readOwnStatus(v)
		})
	})
	w.snapshot.ObserveWorkers(all, w.clock.Now())
	if w.late = nil; err == nil && w.snapshot.Current != nil && w.snapshot.Status != nil {
		w.late, _ = w.snapshot.lateServers()
	}
	return err
}
