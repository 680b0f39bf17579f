package worker

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"bijou/state/backoff"
	"bijou/state/keyspace"
	"bijou/updater"
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

// Room alone changes all the time. It is written again between two inventories only if it has changed by
// an eighth and by minRoomChange bytes, and once in roomInterval at most.
const (
	minRoomChange = 64 << 20
	roomInterval  = time.Minute
)

// A component that is ill may say another reason each time, which is written once in illInterval at most.
const illInterval = time.Minute

// runSurvey writes an inventory of this server from time to time, but not while an update runs, since
// servers differ then. If the last update has not succeeded, or there was none, it reports only the free
// room.
func (w *worker) runSurvey(ctx context.Context) error {
	var last record.Inventory
	var written time.Time
	health, err := w.recallHealth(ctx)
	if err != nil {
		return unlessDone(ctx, err)
	}

	surveyOnce := func() error {
		request := int(w.finishedRequest.Load())
		if !w.resting.Load() {
			return nil
		}

		now, err := w.takeInventory(ctx, request, health)
		if err != nil {
			if ctx.Err() == nil {
				slog.Warn("cannot see what is on this server", "error", err)
			}
			return nil
		}

		// An update may have begun meanwhile.
		isCurrent := w.resting.Load() && int(w.finishedRequest.Load()) == request
		if !isCurrent || !isNews(last, now, time.Since(written)) {
			return nil
		}

		isWritten := false
		err = retryStore(ctx, func() (err error) {
			isWritten, err = w.writeInventory(ctx, now)
			return err
		})
		if err != nil {
			return err
		}

		if isWritten {
			last = now
			written = time.Now()
		}
		return nil
	}

	for ctx.Err() == nil {
		if err := surveyOnce(); err != nil {
			return unlessDone(ctx, err)
		}
		_ = backoff.Sleep(ctx, max(time.Second, time.Duration(w.surveyInterval.Load())))
	}
	return nil
}

// writeInventory writes the inventory. It writes none for a server that is not registered and has no part
// in an update, since that inventory would outlive the server.
func (w *worker) writeInventory(ctx context.Context, now record.Inventory) (written bool, err error) {
	err = w.claim.Update(ctx, func(tx *keyspace.Tx) error {
		written = false
		if now.Request == 0 {
			registered, err := updater.ReadKey[struct{}](tx.View, keys.BootServer(w.o.LRN))
			if err != nil || registered == nil {
				return err
			}
		}

		written = true
		return tx.Put(keys.Inventory(w.o.LRN), now)
	})

	return written, err
}

// isNews reports whether an inventory is worth writing so long after the last one was written.
func isNews(last, now record.Inventory, age time.Duration) bool {
	if now.Request == 0 && len(now.Room) == 0 {
		return false // it says nothing
	}
	if age >= inventoryInterval || age >= roomInterval && roomChanged(last.Room, now.Room) {
		return true
	}

	last.At = now.At
	last.Room = now.Room
	last.HealthAt = now.HealthAt
	if age < illInterval {
		last.Ill = keepReasons(last.Ill, now.Ill)
	}
	return !reflect.DeepEqual(now, last)
}

// keepReasons returns the components of last with the reasons of now, if they are the same components.
func keepReasons(last, now map[string]string) map[string]string {
	if slices.Equal(slices.Sorted(maps.Keys(last)), slices.Sorted(maps.Keys(now))) {
		return now
	}
	return last
}

func roomChanged(last, now []record.Room) bool {
	return !slices.EqualFunc(last, now, func(a, b record.Room) bool {
		change := max(a.Free-b.Free, b.Free-a.Free)
		return a.At == b.At && slices.Equal(a.For, b.For) && change < max(minRoomChange, a.Free/8)
	})
}

// takeInventory collects the inventory: the room, and for each component its differences from the release
// and its health. With request 0 it collects only the room.
func (w *worker) takeInventory(ctx context.Context, request int, health *healthMemory) (i record.Inventory, err error) {
	i = record.Inventory{At: time.Now().UTC(), Request: request, Differs: map[string][]string{}}
	i.Room, i.Installed, err = w.o.Server.Room(w.o.Manifest)
	if err != nil {
		slog.Warn("cannot see how much room there is", "error", err) // the update goes on without it
	}
	if request == 0 {
		return i, nil
	}

	health.begin(request)
	i.HealthAt = i.At

	for _, c := range w.o.Manifest.Components {
		if c.Strategy == release.LeaderOnce {
			continue
		}
		ways, err := w.o.Server.Differences(ctx, c)
		if err != nil {
			return i, err
		}

		ill, runs := w.o.Server.Examine(ctx, c)
		if ctx.Err() != nil {
			return i, ctx.Err()
		}
		health.note(&i, c, ill, runs)

		for _, way := range ways[:min(len(ways), maxWays)] {
			i.Differs[c.Name] = append(i.Differs[c.Name], record.Shorten(way, maxWay))
		}
	}

	return i, nil
}

// noteFinished notes for the survey whether an update runs, and which one this server has finished. It does
// nothing before the request was read: an inventory without a request would say nothing about components,
// and end their findings.
func (w *worker) noteFinished() {
	if w.readRevision == 0 {
		return
	}

	r := w.snapshot.Current
	s := w.snapshot.Status
	w.resting.Store(r == nil || r.Ended())
	if r != nil && s != nil && s.IsFor(*r) && s.Finished && r.Succeeded() {
		w.finishedRequest.Store(int64(r.ID))
	} else {
		w.finishedRequest.Store(0)
	}
}
