package record

import "time"

// Gate is how far the leader has let the workers of a request go, in status/gate. It
// is a shortcut: the servers' own records decide. It is not in the request, since
// all workers hear of each gate, and the request grows with their number.
type Gate struct {
	Request   int       `json:"request"`
	StartedAt time.Time `json:"started-at"` // the request's
	Attempt   int       `json:"attempt"`    // in which it was opened
	Step      int       `json:"step"`       // to which all servers have come
	StepName  string    `json:"step-name,omitempty"`
	Plan      string    `json:"plan,omitempty"` // the digest of the plan that has that step
	At        time.Time `json:"at"`             // when, or when something has moved after that, by the leader's clock
	// Slow is set once the alert was sent that nothing moves at this step.
	Slow bool `json:"slow,omitempty"`
	// Waited is for how many seconds nothing had moved when a leader wrote that last, since
	// the next one's clock may be another: docs/dev/stall-detection.md.
	Waited int `json:"waited,omitempty"`
	// Progress is the request's when the leader wrote this: if that has grown since, At and
	// Waited are about what was before. Binaries of before do not write it.
	Progress int `json:"progress,omitempty"`
}

// Identity tells one gate from the next: for each step another one is opened.
func (g Gate) Identity() any {
	return [4]int64{int64(g.Request), g.StartedAt.UnixNano(), int64(g.Attempt), int64(g.Step)}
}

// IsAbout reports whether the gate was written in that attempt at the request.
func (g Gate) IsAbout(r Request) bool {
	return g.Request == r.ID && g.StartedAt.Equal(r.StartedAt) && g.Attempt == r.Attempt
}

// OpenStep returns the last step for which the gate is open in the request; 0 if there is none.
func (g Gate) OpenStep(r Request) int {
	if g.Request != r.ID || !g.StartedAt.Equal(r.StartedAt) {
		return 0
	}
	return g.Step
}

// IsProven reports whether all workers of the request have come up with its version, as
// its gate shows. Without a request somebody else has replaced the program, unless a
// request was just recovered, perhaps because of that version.
func IsProven(r *Request, g Gate, recovery *Recovery) bool {
	if r == nil {
		return recovery == nil
	}
	return r.Succeeded() || g.OpenStep(*r) > 0
}
