package record

import "time"

// The results in a History.
const (
	Running   = "running"
	Succeeded = "succeeded"
	Stopped   = "stopped"
	Recovered = "recovered" // stopped, and made again as another request
)

// History is one update, kept for good. Its end is its last attempt's.
type History struct {
	ID        int        `json:"id"`
	By        string     `json:"by"`            // "release", "operator", "servers" (the list changed), "recover"
	Who       string     `json:"who,omitempty"` // whose wish it was, if somebody's
	From      string     `json:"from,omitempty"`
	To        string     `json:"to"`
	Servers   []int      `json:"servers"`
	Result    string     `json:"result"`
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that it was stopped for
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	Attempts  []Attempt  `json:"attempts,omitempty"` // all, the oldest first
}

// Attempt is one attempt at an update.
type Attempt struct {
	Number    int        `json:"number"`
	Who       string     `json:"who,omitempty"` // who wanted it, if somebody did
	Result    string     `json:"result"`
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that it was stopped for
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
}

// Begin adds a running attempt.
func (h *History) Begin(number int, who string, now time.Time) {
	h.Result, h.Why, h.AtFault, h.EndedAt = Running, "", nil, nil
	h.Attempts = append(h.Attempts[:len(h.Attempts):len(h.Attempts)], Attempt{Number: number, Who: who, Result: Running, StartedAt: now})
}

// End completes the present attempt. It adds one whose beginning an older version has not
// written.
func (h *History) End(a Attempt) {
	h.Result, h.Why, h.AtFault, h.EndedAt = a.Result, a.Why, a.AtFault, a.EndedAt
	before := h.Attempts
	if n := len(before); n > 0 && before[n-1].Number == a.Number {
		before, a.Who, a.StartedAt = before[:n-1], before[n-1].Who, before[n-1].StartedAt
	}
	h.Attempts = append(before[:len(before):len(before)], a)
}

// Audit is one change that somebody has made, in audit/<n>. It is written in the
// transaction of the change, and never changed or removed.
type Audit struct {
	ID     int       `json:"id"`
	At     time.Time `json:"at"`               // by the clock of whoever did it
	Who    string    `json:"who"`              // USER@HOST
	What   string    `json:"what"`             // the command
	Detail string    `json:"detail,omitempty"` // to what, and what it was before
	Why    string    `json:"why,omitempty"`    // as who did it says
}
