package updater

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/updater/record"
	"bijou/updater/release"
)

// The refusals of commands.
var (
	ErrNothingToRecover = errors.New("nothing to recover")
	ErrNotStopped       = errors.New("update is not stopped")
	ErrNotRunning       = errors.New("no update is running")
)

// Recover clears a stopped request away, so that the leader makes it again with
// the servers as they are and the newest release. What it takes away is about
// this update only, and which files its release consists of, which is looked at again: a rolling component's turn stays with its server, whose
// member may be down. ErrNothingToRecover, ErrNotStopped.
func Recover(s Snapshot, now time.Time, by string) ([]Change, error) {
	switch {
	case s.Current == nil:
		return nil, ErrNothingToRecover
	case !s.Current.Stop:
		return nil, ErrNotStopped
	}
	h := s.Entry
	h.Result = record.Recovered
	changes := []Change{
		remove(s.Keys.Current()), remove(s.Keys.Gate()), remove(s.Keys.Published()), put(s.Keys.History(s.Current.ID), h),
		put(s.Keys.Recovery(), record.Recovery{At: now, By: by, Was: h.From, Failed: s.Current.Version}),
	}
	for _, name := range slices.Sorted(maps.Keys(s.Contents)) {
		changes = append(changes, remove(s.Keys.Contents(name)))
	}
	return changes, nil
}

// Leftovers are the records of workers about requests that are no more. They
// count for nothing, and may be removed in any number of transactions.
func Leftovers(s Snapshot) (changes []Change) {
	for _, lrn := range slices.Sorted(maps.Keys(s.Workers)) {
		if s.Current == nil || !s.Workers[lrn].For(*s.Current) {
			changes = append(changes, remove(s.Keys.Worker(lrn)))
		}
	}
	return changes
}

// AtStart is what an updater does when its process begins, whether or not it
// leads: a request that was stopped, and of which a server has been unregistered
// since, is recovered. Otherwise it does nothing, however often it begins.
func AtStart(s Snapshot, now time.Time) []Change {
	if s.Current == nil || !s.Current.Stop || s.Current.EndedAt == nil || len(s.unregisteredServers()) == 0 {
		return nil
	}
	changes, err := Recover(s, now, "restart")
	if err != nil {
		return nil
	}
	return changes
}

// unregisteredServers are the servers of the request that are no boot servers any more.
func (s Snapshot) unregisteredServers() (gone []int) {
	for _, lrn := range s.Current.Servers {
		if !slices.Contains(s.Servers, lrn) {
			gone = append(gone, lrn)
		}
	}
	return gone
}

// Retry lets a stopped request go on at the step that failed: another attempt. ErrNotStopped,
// and an error if a server of the request is gone: others would wait for it.
func Retry(s Snapshot, now time.Time, by string) ([]Change, error) {
	if s.Current == nil || !s.Current.Stop {
		return nil, ErrNotStopped
	}
	if gone := s.unregisteredServers(); len(gone) > 0 {
		return nil, fmt.Errorf("cannot retry: server %s is registered no more; the update has to be made again", record.ListServers(gone))
	}
	r := *s.Current
	r.Stop, r.Why, r.EndedAt, r.Missing, r.ProgressAt = false, "", nil, nil, now
	r.Attempt++
	h := s.Entry
	h.Begin(r.Attempt, by, now)
	changes := []Change{put(s.Keys.Current(), r), put(s.Keys.History(r.ID), h)}
	for _, name := range slices.Sorted(maps.Keys(s.Contents)) {
		if c := s.Contents[name]; !c.Success && release.Same(c.Version, r.Version) {
			changes = append(changes, remove(s.Keys.Contents(name)))
		}
	}
	return changes, nil
}

// Halt stops the request that runs, by an operator's wish, and reports that.
// ErrNotRunning.
func Halt(s Snapshot, now time.Time, why string) ([]Change, error) {
	if s.Current == nil || s.Current.Ended() || s.Current.Stop {
		return nil, ErrNotRunning
	}
	return s.stopRequest(now, nil, "by hand: "+cmp.Or(strings.TrimSpace(why), "no reason was given")).Changes, nil
}

// Unregister removes a boot server, and what it says of itself, so that another machine
// may work as it from then on: but not how far it
// is in an update that runs, which it would not write again while the others wait.
func Unregister(s Snapshot, lrn int) []Change {
	k, r := s.Keys, s.Current
	changes := []Change{remove(k.BootServer(lrn)), remove(k.Presence(lrn)), remove(k.Claim(lrn)), remove(k.Inventory(lrn)), remove(k.Activity(lrn))}
	if r != nil && !r.Stop && !r.Ended() && slices.Contains(r.Servers, lrn) {
		return changes
	}
	return append(changes, remove(k.Worker(lrn)))
}
