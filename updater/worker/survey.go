package worker

import (
	"context"
	"log/slog"
	"reflect"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// A worker writes its inventory when that changes, and otherwise seldom, so that others
// see how old it is.
const inventoryInterval = 5 * time.Minute

// The bounds of what an inventory says of one component: in how many ways it differs, and the
// bytes of each.
const (
	maxWays = 16
	maxWay  = 2 << 10
)

// runSurvey writes no inventory while an update runs: servers differ then.
func (w *worker) runSurvey(ctx context.Context) error {
	var last record.Inventory
	var written time.Time
	for ; ctx.Err() == nil; _ = backoff.Sleep(ctx, max(time.Second, time.Duration(w.surveyInterval.Load()))) {
		request := int(w.finishedRequest.Load())
		if request == 0 {
			continue
		}
		now, err := w.takeInventory(ctx, request)
		if err != nil && ctx.Err() == nil {
			slog.Warn("cannot see what is on this server", "error", err)
		}
		last.At = now.At
		if err != nil || int(w.finishedRequest.Load()) != request || reflect.DeepEqual(now, last) && time.Since(written) < inventoryInterval {
			continue
		}
		err = retryStore(ctx, func() error {
			return w.claim.Update(ctx, func(tx *keyspace.Tx) error { return tx.Put(keys.Inventory(w.o.LRN), now) })
		})
		if err != nil {
			return unlessDone(ctx, err)
		}
		last, written = now, time.Now()
	}
	return nil
}

func (w *worker) takeInventory(ctx context.Context, request int) (i record.Inventory, err error) {
	i = record.Inventory{At: time.Now().UTC(), Request: request, Differs: map[string][]string{}}
	for _, c := range w.o.Manifest.Components {
		if c.Strategy == release.LeaderOnce {
			continue
		}
		ways, err := w.o.Server.Differences(ctx, c)
		if err != nil {
			return i, err
		}
		for _, way := range ways[:min(len(ways), maxWays)] {
			i.Differs[c.Name] = append(i.Differs[c.Name], record.Shorten(way, maxWay))
		}
	}
	return i, nil
}

func (w *worker) noteFinished() {
	r, s := w.snapshot.Current, w.snapshot.Status
	if r != nil && s != nil && s.IsFor(*r) && s.Finished && r.Succeeded() {
		w.finishedRequest.Store(int64(r.ID))
	} else {
		w.finishedRequest.Store(0)
	}
}
