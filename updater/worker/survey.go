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

// inventoryInterval is how often a worker writes its inventory again if nothing has changed, so that other
// processes see that the inventory is current.
const inventoryInterval = 5 * time.Minute

// The limits of a component's differences in an inventory: their number, and the size of each.
const (
	maxDifferences     = 16
	maxDifferenceBytes = 2 << 10
)

// Free space changes all the time. If nothing else has changed, it is written only if it has changed by an
// eighth and by minRoomChange bytes, and at most once per roomInterval.
const (
	minRoomChange = 64 << 20
	roomInterval  = time.Minute
)

// illInterval is the shortest time between two writes if the same components are ill and only their reasons
// have changed. The reasons can differ with each check.
const illInterval = time.Minute

// runSurvey takes an inventory of this server at intervals until ctx is done, and writes it if it is news. It
// begins none while an update runs, since servers differ during an update. Unless the last update has succeeded
// and this server has finished its part, the inventory contains only the free space and the digests of the
// installed files. runSurvey returns nil once ctx is done, and errors that a retry cannot fix.
func (w *worker) runSurvey(ctx context.Context) error {
	health, err := w.recallHealth(ctx)
	if err != nil {
		return unlessDone(ctx, err)
	}

	s := &survey{health: health}
	for ctx.Err() == nil {
		if err := w.surveyOnce(ctx, s); err != nil {
			return unlessDone(ctx, err)
		}
		// The interval is 0 until the configuration is read. The loop itself checks whether ctx is done.
		_ = backoff.Sleep(ctx, max(time.Second, time.Duration(w.surveyInterval.Load())))
	}
	return nil
}

// survey is the state that runSurvey keeps between two inventories.
type survey struct {
	health    *healthMemory
	last      record.Inventory // the inventory that was last written
	writtenAt time.Time
}

// surveyOnce takes an inventory, and writes it if it is news. It does nothing while an update runs, or before
// the request was first read. It returns nil if the inventory cannot be taken. If the inventory cannot be
// written, surveyOnce tries again, and returns an error only if a retry cannot help or ctx is done.
func (w *worker) surveyOnce(ctx context.Context, s *survey) error {
	request := int(w.finishedRequest.Load())
	if !w.resting.Load() {
		return nil
	}

	inv, err := w.takeInventory(ctx, request, s.health)
	if err != nil {
		// The next survey tries again.
		if ctx.Err() == nil {
			slog.Warn("cannot check the components on this server", "error", err)
		}
		return nil
	}

	// An update may have begun, or even ended, in the meantime.
	isCurrent := w.resting.Load() && int(w.finishedRequest.Load()) == request
	if !isCurrent || !isNews(s.last, inv, time.Since(s.writtenAt)) {
		return nil
	}

	isWritten := false
	err = retryStore(ctx, func() (err error) {
		isWritten, err = w.writeInventory(ctx, inv)
		return err
	})
	if err != nil {
		return err
	}

	// If nothing was written, the next survey tries again.
	if isWritten {
		s.last = inv
		s.writtenAt = time.Now()
	}
	return nil
}

// writeInventory writes the inventory. It writes nothing, and returns false, if the inventory has no request
// and the server is not registered, since no process would ever remove that inventory.
func (w *worker) writeInventory(ctx context.Context, inv record.Inventory) (written bool, err error) {
	err = w.claim.Update(ctx, func(tx *keyspace.Tx) error {
		// After a conflict, this function runs again.
		written = false
		// With a request, this server is part of the last update.
		if inv.Request == 0 {
			registered, err := updater.ReadKey[struct{}](tx.View, keys.BootServer(w.o.LRN))
			if err != nil {
				return err
			}
			if registered == nil {
				return nil
			}
		}

		written = true
		return tx.Put(keys.Inventory(w.o.LRN), inv)
	})

	return written, err
}

// isNews reports whether the inventory inv must be written. last is the inventory that was last written, and
// age is the time since that write. Before the first write, last is empty and age is very long.
func isNews(last, inv record.Inventory, age time.Duration) bool {
	if inv.Request == 0 && len(inv.Room) == 0 {
		// Without a request, only Room and Installed are valid, and Installed only with Room.
		return false
	}
	isRoomDue := age >= roomInterval && roomChanged(last.Room, inv.Room)
	if age >= inventoryInterval || isRoomDue {
		return true
	}

	// Differences in these fields alone are no news.
	last.At = inv.At
	last.Room = inv.Room
	last.HealthAt = inv.HealthAt
	if age < illInterval {
		// Other reasons for the same ill components are no news yet.
		last.Ill = keepReasons(last.Ill, inv.Ill)
	}
	return !reflect.DeepEqual(inv, last)
}

// keepReasons returns the new reasons if they are about the same components as the last reasons. The caller
// then finds no difference. Otherwise keepReasons returns the last reasons.
func keepReasons(last, now map[string]string) map[string]string {
	if slices.Equal(slices.Sorted(maps.Keys(last)), slices.Sorted(maps.Keys(now))) {
		return now
	}
	return last
}

// roomChanged reports whether the file systems or their uses are different, or the free space of one has changed
// by at least an eighth and by at least minRoomChange.
func roomChanged(last, now []record.Room) bool {
	return !slices.EqualFunc(last, now, func(a, b record.Room) bool {
		change := max(a.Free-b.Free, b.Free-a.Free)
		isSmall := change < max(minRoomChange, a.Free/8)
		return a.At == b.At && slices.Equal(a.For, b.For) && isSmall
	})
}

// takeInventory collects the inventory: the free space, the digests of the installed files, and for each
// component its differences from the release, at most maxDifferences of them, and its health. It also records
// the health in the memory. If request is 0, it collects nothing about differences and health. It leaves out
// components with the strategy LeaderOnce, and the free space if that is unknown. It returns an error if it
// cannot compare a component with the release, or if ctx is done during the checks.
func (w *worker) takeInventory(ctx context.Context, request int, memory *healthMemory) (record.Inventory, error) {
	inv := record.Inventory{At: time.Now().UTC(), Request: request, Differs: map[string][]string{}}
	room, installed, err := w.o.Server.Room(w.o.Manifest)
	if err != nil {
		// Updates can run even if the free space is unknown.
		slog.Warn("cannot determine the free space", "error", err)
	}
	inv.Room = room
	inv.Installed = installed
	if request == 0 {
		return inv, nil
	}

	memory.begin(request)
	// Inventory.KnowsHealth compares these two times.
	inv.HealthAt = inv.At

	for _, c := range w.o.Manifest.Components {
		// One server delivers such a component for all, so no server has a part of it to compare.
		if c.Strategy == release.LeaderOnce {
			continue
		}
		differences, err := w.o.Server.Differences(ctx, c)
		if err != nil {
			return inv, err
		}

		problem, runs := w.o.Server.Examine(ctx, c)
		// If ctx has ended, the problem proves nothing.
		if ctx.Err() != nil {
			return inv, ctx.Err()
		}
		// This adds the component to inv.Ill or inv.Unsure if it counts as ill or may still be starting.
		memory.note(&inv, c, problem, runs)

		for _, difference := range differences[:min(len(differences), maxDifferences)] {
			inv.Differs[c.Name] = append(inv.Differs[c.Name], record.Shorten(difference, maxDifferenceBytes))
		}
	}

	return inv, nil
}

// noteFinished records for the survey whether an update runs. It also records the ID of the last update if that
// update has succeeded and this server has finished its part, and 0 otherwise. Before the request was first
// read, it does nothing, so that the survey waits. Until then an inventory would be without components, which
// would end the findings about them.
func (w *worker) noteFinished() {
	if w.readRevision == 0 {
		return
	}

	r := w.snapshot.Current
	s := w.snapshot.Status
	w.resting.Store(r == nil || r.Ended())

	finished := 0
	hasSucceeded := r != nil && r.Succeeded()
	if hasSucceeded && s != nil && s.IsFor(*r) && s.Finished {
		finished = r.ID
	}
	w.finishedRequest.Store(int64(finished))
}
