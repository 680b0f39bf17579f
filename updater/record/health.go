package record

import (
	"fmt"
	"time"
)

// Inventory has what a worker has found on its server at its last look.
type Inventory struct {
	At      time.Time           `json:"at"`
	Request int                 `json:"request"`           // the last one, whose part it has done; 0: none, and only Room and Installed count
	Differs map[string][]string `json:"differs,omitempty"` // by component, in which ways
	// Room is how much room there is for files of releases. Former versions do not know, and others may not.
	Room []Room `json:"room,omitempty"`
	// Installed has the sums of the files that components are installed from, by component, as
	// ShortDigest has them. It is known if Room is.
	Installed map[string]string `json:"installed,omitempty"`
}

// Finding is one thing that is not as the last update left it.
type Finding struct {
	Server    int       `json:"server"`
	Component string    `json:"component,omitempty"` // "": its worker
	What      string    `json:"what"`
	Since     time.Time `json:"since"` // when it was seen first
}

// Identity tells one finding from others.
func (f Finding) Identity() any {
	f.Since = time.Time{}
	return f
}

// Same reports whether it is about the same thing, whenever that was seen first.
func (f Finding) Same(o Finding) bool {
	return f.Server == o.Server && f.Component == o.Component && f.What == o.What
}

// String describes the finding.
func (f Finding) String() string {
	if f.Component == "" {
		return fmt.Sprintf("server %d: %s", f.Server, f.What)
	}
	return fmt.Sprintf("server %d, %s: %s", f.Server, f.Component, f.What)
}

// Degraded holds the findings, as many as NewDegraded keeps.
type Degraded struct {
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // that are not in it
}

// Repair is an operator's wish to have the findings repaired.
type Repair struct {
	Servers []int  `json:"servers,omitempty"` // whose findings; none: everybody's
	Who     string `json:"who,omitempty"`
}

// The kinds of an Alert.
const (
	AlertStarted   = "started"
	AlertSucceeded = "succeeded"
	AlertStopped   = "stopped"
	AlertMissing   = "missing"  // a server has no worker alive; the update goes on
	AlertSlow      = "slow"     // nothing has moved for a while; the update goes on
	AlertTwin      = "twin"     // two servers go by one LRN
	AlertReplaced  = "replaced" // the files of a release that servers have were replaced
	AlertRefused   = "refused"  // the release that servers would take cannot be had or trusted; nothing begins
	AlertDegraded  = "degraded" // something is not as the last update left it
	AlertTest      = "test"
)

// Alert is a message to operators. It is written to the outbox in the
// transaction that causes it, and sent at least once.
type Alert struct {
	ID      string    `json:"id"` // of request, attempt and kind: the same event is the same key
	Kind    string    `json:"kind"`
	Cluster string    `json:"cluster,omitempty"` // as the configuration calls it when it is sent
	Request int       `json:"request,omitempty"`
	Version string    `json:"version,omitempty"`
	Servers []int     `json:"servers,omitempty"` // whom it is about: if something is wrong, those at fault
	Message string    `json:"message"`
	At      time.Time `json:"at"`
}

// CheckFailure explains why the last look for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Refused is the release that is not taken because of that, once it was told.
	Refused string `json:"refused,omitempty"`
}

// Refusal explains why a release that is published cannot be installed as it is.
type Refusal struct {
	Version string    `json:"version"`
	Sums    string    `json:"sums,omitempty"` // the digest of its SHA256SUMS, if that is known
	Why     string    `json:"why"`
	At      time.Time `json:"at"` // when it was found first
}

// Refusals are the releases that are refused, the newest first, in info/refused. That they were
// reported is written with them.
type Refusals struct {
	Releases []Refusal `json:"releases"`
}

// MaxRefusals is the number of releases that are remembered as refused.
const MaxRefusals = 8

// Diagnosis is one thing about a boot server, and how it is.
type Diagnosis struct {
	What, How string
	Bad       bool
}

// Recovery is written when an operator (or an updater's restart) has cleared a stopped
// update, which is to be made again, whatever the update window.
type Recovery struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Was is the version that the servers had before the update that was cleared, the
	// last that succeeded; "" if there was none. Failed is the one they went to.
	Was    string `json:"was,omitempty"`
	Failed string `json:"failed,omitempty"`
}
