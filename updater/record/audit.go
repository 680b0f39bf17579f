package record

import "time"

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
