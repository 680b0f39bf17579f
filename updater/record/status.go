// Package record defines what the updater keeps in the store: the records below its
// keys, and the schema of its configuration.
//
// It reads and writes nothing, decides nothing about updates, and imports nothing of bijou; every
// part of the updater may import it. Field names that operators and other programs know are fixed:
// fields may be added, none of them renamed.
package record

import "time"

// Status is how far one worker is, in status/bootserver/<LRN>. Other programs know its
// first five fields.
type Status struct {
	Version  string `json:"version"`
	Step     int    `json:"step"`     // the step it has come to, from 1: all before are done
	Finished bool   `json:"finished"` // all steps are done
	Error    bool   `json:"error"`
	Message  string `json:"message"` // why, if Error

	// Digests are of the version that its worker is.
	Digests

	// Request and Attempt are those that it works for.
	Request int `json:"request"`
	Attempt int `json:"attempt"`
	// StepName is the step's name in the manifest; before the first, InstallStep or HandOverStep.
	StepName string `json:"step-name,omitempty"`
	// Steps is how many there are in this version's plan; 0 before the first.
	Steps int `json:"steps,omitempty"`
	// WaitedFor are the servers at fault, of an error that is not its own: it has waited
	// for them, or one of them was to do something for all.
	WaitedFor []int `json:"waited-for,omitempty"`
	// At is when it came to this step, or when that could be written, by the server's clock.
	At time.Time `json:"at"`
}

// Identity tells one record from the next: a worker writes each of its steps whole, and its own.
func (s Status) Identity() any { return [3]int64{int64(s.Request), int64(s.Attempt), int64(s.Step)} }

// The step names before the first step.
const (
	InstallStep  = "install"
	HandOverStep = "hand over"
)

// HandOverTimeout is how long the successor of a worker that has installed it may take to start.
const HandOverTimeout = time.Minute

// HandsOver reports whether the worker has installed the request's version, and waits for
// that to take its place.
func (s Status) HandsOver() bool { return s.Step == 0 && s.StepName == HandOverStep && !s.Error }

// IsFor reports whether the record is about the request.
func (s Status) IsFor(r Request) bool { return s.Request == r.ID && s.Version == r.Version }

// AcceptsStatus reports whether a worker may write the record: now is the stored request.
func AcceptsStatus(now *Request, s Status) bool {
	return now != nil && s.IsFor(*now) && now.Attempt == s.Attempt && !now.Stop && !now.Ended()
}

// Presence shows that a worker lives, its version, and whose it is.
type Presence struct {
	Version string `json:"version"`
	// Server is the place that the worker works from, its host's machine-id and its
	// folder, whatever LRN it was given, and Host the host's name.
	Server string `json:"server,omitempty"`
	Host   string `json:"host,omitempty"`
	Digests
	// Package is in which form and for which architecture the server gets releases, as in
	// deb/amd64; "" is not known.
	Package string `json:"package,omitempty"`
}

// The kinds of waits of an Activity.
const (
	WaitBarrier  = "barrier"  // for servers to come to its step
	WaitTurn     = "turn"     // for the server that has the turn at a rolling component
	WaitQuorum   = "quorum"   // for other servers' members of one to be well
	WaitContents = "contents" // for the server that brings contents for all
)

// Activity says what a worker is doing at its step, or for what it waits there, in
// activity/<LRN>. Neither what is over in a moment is written, nor a wait at a barrier,
// which the workers' records show.
type Activity struct {
	Request int `json:"request"`
	Attempt int `json:"attempt"`
	Step    int `json:"step"`

	Message string    `json:"message"`
	Kind    string    `json:"kind,omitempty"`    // of a wait for others; "" is work
	Servers []int     `json:"servers,omitempty"` // for whom it waits, as far as that is known
	Since   time.Time `json:"since"`             // by the server's clock
}

// IsOf reports whether it is an activity of the worker of that record, at its present step.
func (a Activity) IsOf(s Status) bool {
	return a.Request == s.Request && a.Attempt == s.Attempt && a.Step == s.Step && !s.Finished && !s.Error &&
		!s.HandsOver()
}

// Text describes the activity.
func (a Activity) Text() string {
	if a.Message == "" {
		return ""
	}
	return a.Message + " since " + a.Since.UTC().Format(time.RFC3339)
}

// Turn names the server that may take its member of a rolling component down. It is held
// without a lease until that member is healthy again: the turn of a server that died
// half-way is nobody else's until an operator unregisters it.
type Turn struct {
	Server  int `json:"server"`
	Request int `json:"request"` // at which it was taken
}

// Identity tells one turn from the next.
func (t Turn) Identity() any { return t }
