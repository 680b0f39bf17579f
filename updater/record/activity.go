package record

import "time"

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
	return a.Request == s.Request && a.Attempt == s.Attempt && a.Step == s.Step && !s.Finished && !s.Error && !s.HandsOver()
}

// Text describes the activity.
func (a Activity) Text() string {
	if a.Message == "" {
		return ""
	}
	return a.Message + " since " + a.Since.UTC().Format(time.RFC3339)
}
