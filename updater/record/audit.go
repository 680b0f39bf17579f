package record

import "time"

// Audit is one thing that somebody did to change something, in audit/<n>. It is written
// in the transaction that does it, and never changed or removed.
type Audit struct {
	ID     int       `json:"id"`
	At     time.Time `json:"at"`               // by the clock of whoever did it
	Who    string    `json:"who"`              // USER@HOST
	What   string    `json:"what"`             // the command
	Detail string    `json:"detail,omitempty"` // to what, and what it was before
	Why    string    `json:"why,omitempty"`    // as who did it says
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

// Begin adds an attempt, which runs.
func (h *History) Begin(number int, who string, now time.Time) {
	h.Result, h.Why, h.AtFault, h.EndedAt = Running, "", nil, nil
	h.Attempts = append(h.Attempts[:len(h.Attempts):len(h.Attempts)], Attempt{Number: number, Who: who, Result: Running, StartedAt: now})
}

// End says how the present attempt has ended. One whose beginning an older version has
// not written is added.
func (h *History) End(a Attempt) {
	h.Result, h.Why, h.AtFault, h.EndedAt = a.Result, a.Why, a.AtFault, a.EndedAt
	before := h.Attempts
	if n := len(before); n > 0 && before[n-1].Number == a.Number {
		before, a.Who, a.StartedAt = before[:n-1], before[n-1].Who, before[n-1].StartedAt
	}
	h.Attempts = append(before[:len(before):len(before)], a)
}
