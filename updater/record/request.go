package record

import "time"

// Request is the update that runs or ran last, in status/current. Other programs know its
// first three fields.
type Request struct {
	Version string `json:"version"` // to which all servers go
	Servers []int  `json:"servers"` // the list as it was at the beginning, in numeric order
	Stop    bool   `json:"stop"`    // workers stop, and the leader waits for an operator

	// Digests are of the release: workers take no other bytes.
	Digests

	// ID is the request's number, the same as its entry's in the history. Status
	// records of other requests do not count.
	ID int `json:"id"`
	// Attempt counts from 1; retrying a failed step makes the next one.
	Attempt int `json:"attempt"`
	// StartedAt, AttemptAt (when the attempt began) and EndedAt are by the
	// leader's clock. EndedAt is set together with the report of the end, good or
	// bad, and taken away by a retry.
	StartedAt time.Time  `json:"started-at"`
	AttemptAt time.Time  `json:"progress-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	// Repair says that it brings servers back to what the update before has left. Steps of
	// other components than Components are passed; if there are none, no step is.
	Repair     bool     `json:"repair,omitempty"`
	Components []string `json:"components,omitempty"`
	// Why says why it was stopped.
	Why string `json:"why,omitempty"`
	// Missing are servers that were reported to have no worker alive.
	Missing []int `json:"missing,omitempty"`
}

// Ended reports whether the request's end was reported.
func (r Request) Ended() bool { return r.EndedAt != nil }

// Succeeded reports whether all servers have done all steps.
func (r Request) Succeeded() bool { return r.Ended() && !r.Stop }

// IsCurrent reports whether that attempt at the request still runs: now is what the store
// holds for the request.
func IsCurrent(now *Request, r Request) bool {
	return now != nil && now.ID == r.ID && now.StartedAt.Equal(r.StartedAt) && now.Attempt == r.Attempt && !now.Stop && !now.Ended()
}

// Progress counts what the servers have done for the request, as their workers' records
// say: it grows with everything that one of them does.
func (r Request) Progress(workers map[int]Status) (n int) {
	for _, lrn := range r.Servers {
		w, ok := workers[lrn]
		if !ok || !w.IsFor(r) {
			continue
		}
		n += 2 + 2*w.Step
		if w.Finished || w.HandsOver() {
			n++
		}
	}
	return n
}
