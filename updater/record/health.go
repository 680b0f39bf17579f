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
	// Ill has the components that do not work, or whose files are gone, and why. It is known only if
	// HealthAt is At: former versions do not look, and may have carried over what another one has found.
	Ill      map[string]string `json:"ill,omitempty"`
	HealthAt time.Time         `json:"health-at,omitzero"`
	// Unsure are components that were not well yet since the worker began, and may be about to be.
	Unsure []string `json:"unsure,omitempty"`
	// Room is how much room there is for files of releases. Former versions do not know, and others may not.
	Room []Room `json:"room,omitempty"`
	// Installed has the sums of the files that components are installed from, by component, as
	// ShortDigest has them. It is known if Room is.
	Installed map[string]string `json:"installed,omitempty"`
}

// KnowsHealth reports whether Ill has all components that are ill. Else nobody knows: none of them
// counts as well, and none as ill.
func (i Inventory) KnowsHealth() bool { return !i.HealthAt.IsZero() && i.HealthAt.Equal(i.At) }

// Finding is one thing that is not as the last update left it.
type Finding struct {
	Server    int       `json:"server"`
	Component string    `json:"component,omitempty"` // "": its worker
	What      string    `json:"what"`
	Ill       bool      `json:"ill,omitempty"` // it does not work; else it is not what it should be
	Since     time.Time `json:"since"`         // when it was seen first
	// Untold is set until it was reported. Former versions report at once.
	Untold bool `json:"untold,omitempty"`
}

// Identity tells one finding from others. A component that is ill may say another reason each time.
func (f Finding) Identity() any {
	f.Since = time.Time{}
	f.Untold = false
	if f.Ill {
		f.What = ""
	}
	return f
}

// Same reports whether it is about the same thing, whenever that was seen first.
func (f Finding) Same(o Finding) bool { return f.Identity() == o.Identity() }

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

// Twin is a host that goes by the LRN of a server for which another one works. It is in twins/<LRN>
// while its worker lives, which does nothing.
type Twin struct {
	Host   string    `json:"host,omitempty"` // its name
	Folder string    `json:"folder,omitempty"`
	Why    string    `json:"why"` // who works for the server
	At     time.Time `json:"at"`
}

// String returns the twin's directory and host for messages.
func (t Twin) String() string { return fmt.Sprintf("%s of host %q", t.Folder, t.Host) }

// Diagnosis is one thing about a boot server, and how it is.
type Diagnosis struct {
	What, How string
	Bad       bool
}
