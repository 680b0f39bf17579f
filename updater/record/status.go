// Package record defines the data that the updater keeps in the store: the records below its keys, and the
// schema of its configuration.
//
// It does not read or write the store, and makes no decisions about updates. Operators and other programs use
// the JSON names of fields, so fields can be added, but never renamed.
package record

import "time"

// Status is the progress of one worker, in status/bootserver/<LRN>. Other programs use its first five fields.
type Status struct {
	Version  string `json:"version"`
	Step     int    `json:"step"`     // the step that the worker has reached, from 1; all earlier steps are done
	Finished bool   `json:"finished"` // all steps are done
	Error    bool   `json:"error"`
	Message  string `json:"message"` // the reason, if Error is set

	// Digests are the digests of the worker's own version.
	Digests

	// Request and Attempt identify the request and the attempt for which the worker works.
	Request int `json:"request"`
	Attempt int `json:"attempt"`
	// StepName is the step's name in the manifest. Before the first step it is InstallStep or HandOverStep.
	StepName string `json:"step-name,omitempty"`
	// Steps is the number of steps in this version's plan. It is 0 before the first step.
	Steps int `json:"steps,omitempty"`
	// WaitedFor are the servers at fault for an error that the worker itself did not cause. The worker has
	// waited for them, or for one of them to run a step on behalf of all.
	WaitedFor []int `json:"waited-for,omitempty"`
	// At is the time when the worker reached this step, or could first record the step, by the server's clock.
	At time.Time `json:"at"`
}

// Identity implements carry.Identified: a record about another step keeps no unknown fields of the previous one.
func (s Status) Identity() any { return [3]int64{int64(s.Request), int64(s.Attempt), int64(s.Step)} }

// The step names before the first step.
const (
	InstallStep  = "install"
	HandOverStep = "hand over"
)

// HandOverTimeout limits how long a newly installed worker can take to start.
const HandOverTimeout = time.Minute

// HandsOver reports whether the worker has installed the request's version and waits for that version to
// start in its place.
func (s Status) HandsOver() bool { return s.Step == 0 && s.StepName == HandOverStep && !s.Error }

// IsFor reports whether the record is about the request.
func (s Status) IsFor(r Request) bool { return s.Request == r.ID && s.Version == r.Version }

// AcceptsStatus reports whether a worker can still write the record, given the stored request, which can be
// nil.
func AcceptsStatus(stored *Request, s Status) bool {
	return stored != nil && s.IsFor(*stored) && stored.Attempt == s.Attempt && !stored.Stop && !stored.Ended()
}

// Presence shows that a worker is running, its version, and its host.
type Presence struct {
	Version string `json:"version"`
	// Server identifies the worker's installation by its host's machine-id and its directory. It does not
	// depend on the LRN. Host is the host's name.
	Server string `json:"server,omitempty"`
	Host   string `json:"host,omitempty"`
	Digests
	// Package is the form and architecture of the packages that the server installs, such as deb/amd64. It
	// is "" if unknown.
	Package string `json:"package,omitempty"`
}

// These are the values of Activity.Kind that say why a worker waits.
const (
	WaitBarrier  = "barrier"  // for servers to reach its step
	WaitTurn     = "turn"     // for the server that has the turn at a rolling component
	WaitQuorum   = "quorum"   // for other servers' members of a rolling component to be healthy
	WaitContents = "contents" // for the server that runs the step on behalf of all
)

// Activity describes what a worker is doing at its step, or for which servers it waits, in activity/<LRN>.
// Short activities are not written. Waits at a barrier are not written either, since the workers' records
// show them.
type Activity struct {
	Request int `json:"request"`
	Attempt int `json:"attempt"`
	Step    int `json:"step"`

	Message string    `json:"message"`
	Kind    string    `json:"kind,omitempty"`    // the reason for a wait; "" if the worker is working
	Servers []int     `json:"servers,omitempty"` // the servers for which the worker waits, as far as they are known
	Since   time.Time `json:"since"`             // by the server's clock
}

// IsOf reports whether the worker that wrote s is doing the activity at its current step.
func (a Activity) IsOf(s Status) bool {
	isActive := !s.Finished && !s.Error && !s.HandsOver()
	return isActive && a.Request == s.Request && a.Attempt == s.Attempt && a.Step == s.Step
}

// Text describes the activity.
func (a Activity) Text() string {
	if a.Message == "" {
		return ""
	}
	return a.Message + " since " + a.Since.UTC().Format(time.RFC3339)
}

// Turn names the server that is allowed to stop its member of a rolling component. A turn has no lease, and
// lasts until that member is healthy again. If the server dies during its turn, no other server gets the turn
// until an operator unregisters the dead server.
type Turn struct {
	Server  int `json:"server"`
	Request int `json:"request"` // the request in which the turn was taken
}

// Identity implements carry.Identified: the next turn keeps no unknown fields of the previous one.
func (t Turn) Identity() any { return t }
