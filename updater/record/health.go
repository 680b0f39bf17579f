package record

import (
	"fmt"
	"time"
)

// Inventory is the result of a worker's last inspection of its server.
type Inventory struct {
	At time.Time `json:"at"`
	// Request is the last request of which the server has done its part. If it is 0, there is no such
	// request, and only Room and Installed are valid.
	Request int `json:"request"`
	// Differs has the differences from the plan, by component.
	Differs map[string][]string `json:"differs,omitempty"`
	// Ill has the components that do not work or whose files are missing, and the reasons. It is valid only
	// if HealthAt equals At, since earlier versions do not check health, and may keep the Ill of a newer
	// version.
	Ill      map[string]string `json:"ill,omitempty"`
	HealthAt time.Time         `json:"health-at,omitzero"`
	// Unsure are components that have not been healthy since the worker started. They may still be
	// starting.
	Unsure []string `json:"unsure,omitempty"`
	// Room is the free space for files of releases. It is empty if the worker does not know the free space, or
	// has an earlier version.
	Room []Room `json:"room,omitempty"`
	// Installed has the digests of the files from which components were installed, by component, in the form
	// of ShortDigest. It is valid only if Room is not empty.
	Installed map[string]string `json:"installed,omitempty"`
}

// KnowsHealth reports whether Ill is complete, which HealthAt shows. If Ill is not complete, no component counts as
// healthy or ill.
func (i Inventory) KnowsHealth() bool { return !i.HealthAt.IsZero() && i.HealthAt.Equal(i.At) }

// Finding is one difference from the state that the last update left.
type Finding struct {
	Server    int    `json:"server"`
	Component string `json:"component,omitempty"` // "" for a finding about the server's worker
	What      string `json:"what"`
	// Ill is set if the component does not work. Otherwise it differs from the plan.
	Ill   bool      `json:"ill,omitempty"`
	Since time.Time `json:"since,omitzero"` // when the finding was first seen; zero if that is unknown
	// Untold is set until the finding is reported. Earlier versions report findings at once.
	Untold bool `json:"untold,omitempty"`
}

// Identity implements carry.Identified: each finding in a record keeps its own unknown fields. [Finding.Same] also
// compares identities. An identity leaves out the reason of an ill component, since the reason can change with each
// check.
func (f Finding) Identity() any {
	f.Since = time.Time{}
	f.Untold = false
	if f.Ill {
		f.What = ""
	}
	return f
}

// Same reports whether both findings describe the same problem, even if they were first seen at different
// times.
func (f Finding) Same(other Finding) bool { return f.Identity() == other.Identity() }

// String describes the finding.
func (f Finding) String() string {
	if f.Component == "" {
		return fmt.Sprintf("server %d: %s", f.Server, f.What)
	}
	return fmt.Sprintf("server %d, %s: %s", f.Server, f.Component, f.What)
}

// Degraded holds the leader's findings, as many as fit.
type Degraded struct {
	Findings []Finding `json:"findings"`
	More     int       `json:"more,omitempty"` // the number of findings that did not fit
}

// Repair is an operator's request to repair the findings.
type Repair struct {
	Servers []int  `json:"servers,omitempty"` // the servers to repair; empty means all
	Who     string `json:"who,omitempty"`
}

// Twin is a host that was given the LRN of a server although another host already works as that server. The
// record is stored in twins/<LRN> while the twin's worker runs. That worker does nothing.
type Twin struct {
	Host   string    `json:"host,omitempty"` // its host name
	Folder string    `json:"folder,omitempty"`
	Why    string    `json:"why"` // names the host that works as the server
	At     time.Time `json:"at"`
}

// String returns the twin's directory and host for messages.
func (t Twin) String() string { return fmt.Sprintf("%s of host %q", t.Folder, t.Host) }

// Diagnosis is the result of one check of a boot server.
type Diagnosis struct {
	What string // the checked part of the server, such as a component or its clock
	How  string // the state of that part
	Bad  bool   // the state is a problem
}
