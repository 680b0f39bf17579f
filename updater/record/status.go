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
	// StepName is the step's name in the manifest; before the first,
	// InstallStep or HandOverStep.
	StepName string `json:"step-name,omitempty"`
	// Steps is how many there are in this version's plan; 0 before the first.
	Steps int `json:"steps,omitempty"`
	// WaitedFor are the servers at fault, of an error that is not its own: it has waited
	// for them, or one of them was to do something for all.
	WaitedFor []int `json:"waited-for,omitempty"`
	// At is when it came to this step, or when that could be written, by the
	// server's clock.
	At time.Time `json:"at"`
}

// The step names before the first step.
const (
	InstallStep  = "install"
	HandOverStep = "hand over"
)

// HandOverTimeout is how long the successor of a worker that has installed it may take to
// start.
const HandOverTimeout = time.Minute

// HandsOver reports whether the worker has installed the request's version, and waits for
// that to take its place.
func (s Status) HandsOver() bool { return s.Step == 0 && s.StepName == HandOverStep && !s.Error }

// IsFor reports whether the record is about the request.
func (s Status) IsFor(r Request) bool { return s.Request == r.ID && s.Version == r.Version }

// AcceptsStatus reports whether a worker may write the record: now is what the store holds
// for the request.
func AcceptsStatus(now *Request, s Status) bool {
	return now != nil && s.IsFor(*now) && now.Attempt == s.Attempt && !now.Stop && !now.Ended()
}
