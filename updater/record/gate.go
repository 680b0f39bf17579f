package record

import "time"

// Gate is the last step that the leader has opened for the workers of a request, in status/gate. It saves the
// workers from reading the records of all servers, which show the same. The gate is not part of the request,
// since all workers read each gate, and the size of the request grows with the number of servers.
type Gate struct {
	Request int `json:"request"`
	// StartedAt is the StartedAt of the request.
	StartedAt time.Time `json:"started-at"`
	Attempt   int       `json:"attempt"` // the attempt in which the gate was opened
	Step      int       `json:"step"`    // the step that all servers have reached
	StepName  string    `json:"step-name,omitempty"`
	Plan      string    `json:"plan,omitempty"` // the digest of the plan with that step
	// At is the time of the last progress, by the leader's clock. At first, that is when the gate was
	// opened.
	At time.Time `json:"at"`
	// Slow is set once the alert about missing progress at this step was sent.
	Slow bool `json:"slow,omitempty"`
	// Waited is the time without progress, in seconds, when a leader last wrote this record. The next leader
	// needs it because its clock may differ; see docs/dev/stall-detection.md.
	Waited int `json:"waited,omitempty"`
	// Progress is the request's progress when the leader wrote this record. If the request's progress has
	// grown since, At and Waited are out of date. Earlier versions do not write Progress.
	Progress int `json:"progress,omitempty"`
}

// Identity implements carry.Identified: the gate of another step keeps no unknown fields of the previous one.
func (g Gate) Identity() any {
	return [4]int64{int64(g.Request), g.StartedAt.UnixNano(), int64(g.Attempt), int64(g.Step)}
}

// IsAbout reports whether the gate was written in the current attempt at the request.
func (g Gate) IsAbout(r Request) bool {
	return g.Request == r.ID && g.StartedAt.Equal(r.StartedAt) && g.Attempt == r.Attempt
}

// OpenStep returns the last step that the gate opens in the request. It returns 0 if the gate is about a different
// request, or opens no step. A gate of an earlier attempt counts, since a retry does not close gates.
func (g Gate) OpenStep(r Request) int {
	if g.Request != r.ID || !g.StartedAt.Equal(r.StartedAt) {
		return 0
	}
	return g.Step
}

// IsProven reports whether all workers of the request have run its version, which the success of the request
// or an open gate shows. If r is nil, there is no request, and an operator has installed the version. That
// version counts as proven, unless a request was just recovered, since the version may be the reason for the
// recovery.
func IsProven(r *Request, g Gate, recovery *Recovery) bool {
	if r == nil {
		return recovery == nil
	}
	return r.Succeeded() || g.OpenStep(*r) > 0
}
