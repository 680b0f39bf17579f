package decide

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// The errors of operators' commands.
var (
	ErrNothingToRecover = errors.New("nothing to recover")
	ErrNotStopped       = errors.New("the update is not stopped")
	ErrNotRunning       = errors.New("no update is running")
)

// Recover removes a stopped request, so that the leader makes a new request with the current servers and the
// version that [Snapshot.OfferedVersion] returns then. It also removes the gate, all Contents, and the published
// digests, which the leader looks up again. It writes a Recovery, and marks the update as recovered in the history.
// It does not remove the workers' records; see [RemoveLeftovers]. The turn of a rolling component stays with its
// server, whose member may be down.
//
// It returns ErrNothingToRecover if there is no request, and ErrNotStopped if the request is not stopped.
func Recover(s Snapshot, now time.Time, by string) ([]updater.Change, error) {
	switch {
	case s.Current == nil:
		return nil, ErrNothingToRecover
	case !s.Current.Stop:
		return nil, ErrNotStopped
	}

	h := s.Entry
	h.Result = record.Recovered
	changes := []updater.Change{
		updater.Remove(keys.Current),
		updater.Remove(keys.Gate),
		updater.Remove(keys.Published),
		updater.Put(keys.History(s.Current.ID), h),
		updater.Put(keys.Recovery, record.Recovery{At: now, By: by, Was: h.From, Failed: s.Current.Version}),
	}

	for _, name := range slices.Sorted(maps.Keys(s.Contents)) {
		changes = append(changes, updater.Remove(keys.Contents(name)))
	}
	return changes, nil
}

// RemoveLeftovers returns the changes that remove the workers' records of requests other than the current one.
// The changes are independent, so they can be split into any number of transactions.
func RemoveLeftovers(s Snapshot) (changes []updater.Change) {
	for _, lrn := range slices.Sorted(maps.Keys(s.Workers)) {
		if s.Current == nil || !s.Workers[lrn].IsFor(*s.Current) {
			changes = append(changes, updater.Remove(keys.Worker(lrn)))
		}
	}
	return changes
}

// AtStart returns the changes that an updater makes when its process starts, even if it does not lead. They
// recover a stopped request if one of the request's servers is no longer registered. Otherwise AtStart returns
// nil. It also returns nil once the changes are committed, since they remove the request.
func AtStart(s Snapshot, now time.Time) []updater.Change {
	isStopped := s.Current != nil && s.Current.Stop && s.Current.Ended()
	if !isStopped || len(s.unregisteredServers()) == 0 {
		return nil
	}

	// Recover cannot fail, since the request is stopped.
	changes, _ := Recover(s, now, "restart")
	return changes
}

// unregisteredServers returns the request's servers that are no longer registered.
func (s Snapshot) unregisteredServers() []int {
	return slices.DeleteFunc(slices.Clone(s.Current.Servers), func(lrn int) bool {
		return slices.Contains(s.Servers, lrn)
	})
}

// Retry makes another attempt at a stopped request, from the step that failed. It returns ErrNotStopped if
// there is no stopped request. It also returns an error if a server of the request is no longer registered,
// since the other servers would wait for that server.
func Retry(s Snapshot, now time.Time, by string) ([]updater.Change, error) {
	if s.Current == nil || !s.Current.Stop {
		return nil, ErrNotStopped
	}
	if gone := s.unregisteredServers(); len(gone) > 0 {
		return nil, fmt.Errorf(
			"cannot retry: server %s is no longer registered; the update must start again",
			record.ListServers(gone),
		)
	}

	r := *s.Current
	r.Stop = false
	r.Why = ""
	r.EndedAt = nil
	r.Missing = nil
	r.AttemptAt = now
	r.Attempt++

	h := s.Entry
	h.Begin(r.Attempt, by, now)
	changes := []updater.Change{updater.Put(keys.Current, r), updater.Put(keys.History(r.ID), h)}

	// A failed step that one server runs on behalf of all must run again, so its result is removed.
	for _, name := range slices.Sorted(maps.Keys(s.Contents)) {
		if c := s.Contents[name]; !c.Success && release.Same(c.Version, r.Version) {
			changes = append(changes, updater.Remove(keys.Contents(name)))
		}
	}

	return changes, nil
}

// The reasons of a stop by an operator: byHandPrefix is followed by the operator's reason, and stoppedByHand
// is used if the operator gave none.
const (
	byHandPrefix  = "by hand: "
	stoppedByHand = "stopped by hand"
)

// Halt stops the running request on behalf of an operator, and writes an alert. It returns ErrNotRunning if
// no request is running.
func Halt(s Snapshot, now time.Time, why string) ([]updater.Change, error) {
	if s.Current == nil || s.Current.Ended() || s.Current.Stop {
		return nil, ErrNotRunning
	}
	return s.stopRequest(now, noServers, byHandPrefix+cmp.Or(strings.TrimSpace(why), "no reason was given")).Changes, nil
}

// Unregister removes a boot server with its worker's records, so that a different machine can work as that
// server. If the server takes part in a running update, the worker's record of that update is kept. The worker would
// not write the record again, and the other workers would wait for that record.
func Unregister(s Snapshot, lrn int) []updater.Change {
	r := s.Current
	changes := []updater.Change{
		updater.Remove(keys.BootServer(lrn)),
		updater.Remove(keys.Presence(lrn)),
		updater.Remove(keys.Claim(lrn)),
		updater.Remove(keys.Inventory(lrn)),
		updater.Remove(keys.Activity(lrn)),
	}

	isRunning := r != nil && !r.Stop && !r.Ended()
	if isRunning && slices.Contains(r.Servers, lrn) {
		return changes
	}
	return append(changes, updater.Remove(keys.Worker(lrn)))
}
