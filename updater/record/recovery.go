package record

import "time"

// Recovery is written when an operator (or an updater's restart) has cleared a stopped
// update, which is to be made again, whatever the update window.
type Recovery struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Was is the version that the servers had before the update that was cleared, the
	// last that succeeded; "" if there was none. Failed is the one they went to.
	Was    string `json:"was,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// HandOver is written by a leader that makes way for another one, or ends.
type HandOver struct {
	At time.Time `json:"at"`
}
