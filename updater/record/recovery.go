package record

import "time"

// Recovery is written when an operator, or an updater that starts, has cleared a stopped update. A new
// update then begins even if the update window is closed.
type Recovery struct {
	At time.Time `json:"at"`
	By string    `json:"by,omitempty"`
	// Was is the version before the cleared update: the last one that succeeded, or "" if there was none.
	// Failed is the version of the cleared update.
	Was    string `json:"was,omitempty"`
	Failed string `json:"failed,omitempty"`
}

// HandOver is written by a leader that exits or gives up its lead for another leader.
type HandOver struct {
	At time.Time `json:"at"`
}
