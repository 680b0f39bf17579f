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

// Diagnosis is one thing about a boot server, and how it is.
type Diagnosis struct {
	What, How string
	Bad       bool
}
