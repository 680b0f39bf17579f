package updater

import (
	"time"

	"bijou/updater/record"
)

// Snapshot is what the leader has read at one revision.
type Snapshot struct {
	Keys    record.Keys
	Config  record.Config
	Own     string // the version of this updater
	Servers []int  // registered boot servers
	Release string // newest acceptable version; "" is none
	// Published is what a release consists of, as the leader has found last; nil: not known.
	Published   *record.Published
	Target      *record.Target
	Pause       *record.Pause
	Recovery    *record.Recovery
	Current     *record.Request
	Gate        record.Gate    // the one that was opened last, perhaps for another request
	Entry       record.History // the history's entry of Current
	LastID      int            // the number of the history's last entry
	LastTo      string         // and its version, if there is no Current
	Workers     map[int]record.Status
	Contents    map[string]record.Contents
	Hurry       bool // the next update does not wait for the window
	Repair      *record.Repair
	Degraded    record.Degraded // as the leader has written it last
	Unseen      []int           // registered servers of which no worker was ever seen
	Inventories map[int]record.Inventory
	Present     map[int]record.Presence
	// Activities are what workers say that they are doing. No decision is conditional on it.
	Activities map[int]record.Activity
	// Absent says since when the leader has seen no presence of servers; those
	// that are present are not in it.
	Absent map[int]time.Time
	// HandingOver says since when the leader has seen servers wait for the version that
	// they have installed.
	HandingOver map[int]time.Time
	// StageSince is when the leader has first seen the request where it is; zero: it does
	// not know. If Witnessed, it has seen where it was before, too, so that this is
	// when something has moved last, by its own time.
	StageSince time.Time
	Witnessed  bool
	// WaitedBefore is for how long nothing had moved when it saw that first, as another
	// leader had said.
	WaitedBefore time.Duration
}

// Change is one key to write; a nil Value removes it. All changes of one decision
// are one transaction, conditional on all that the snapshot holds.
type Change struct {
	Key   string
	Value any
}

// Verb is what an Action does.
type Verb string

// The verbs of Next.
const (
	Wait   Verb = "wait"   // until something changes, or the time has come
	Start  Verb = "start"  // make a request
	Open   Verb = "open"   // open the gate of a step; conditional on Current only: who has come to a step has come
	Stop   Verb = "stop"   // stop the request, and report that
	Warn   Verb = "warn"   // name servers that are missing, or are back
	Slow   Verb = "slow"   // report that nothing has moved for a while
	Note   Verb = "note"   // say for how long nothing has moved, to the next leader
	Finish Verb = "finish" // report that all is done
)

// Action is the one thing that the leader does next.
type Action struct {
	Verb    Verb
	Until   time.Time // Wait only; zero: whenever something changes
	Why     string    // for operators
	Changes []Change
}

// newWait is the action of waiting.
func newWait(until time.Time, why string) Action { return Action{Verb: Wait, Until: until, Why: why} }

// put makes the change that writes a value.
func put(key string, value any) Change { return Change{Key: key, Value: value} }

// remove makes the change that removes a key.
func remove(key string) Change { return Change{Key: key} }
