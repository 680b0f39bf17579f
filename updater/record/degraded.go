package record

import (
	"fmt"
	"time"
)

// Inventory has what a worker has found on its server at its last look.
type Inventory struct {
	At      time.Time           `json:"at"`
	Request int                 `json:"request"`           // the last one, whose part it has done
	Differs map[string][]string `json:"differs,omitempty"` // by component, in which ways
}

// Finding is one thing that is not as the last update left it.
type Finding struct {
	Server    int       `json:"server"`
	Component string    `json:"component,omitempty"` // "": its worker
	What      string    `json:"what"`
	Since     time.Time `json:"since"` // when it was seen first
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

// Degraded holds all findings.
type Degraded struct {
	Findings []Finding `json:"findings"`
}

// Repair is an operator's wish to have the findings repaired.
type Repair struct {
	Servers []int  `json:"servers,omitempty"` // whose findings; none: everybody's
	Who     string `json:"who,omitempty"`
}
