package record

import "time"

// CheckFailure explains why the last look for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Refused is the release that is not taken because of that, once it was told.
	Refused string `json:"refused,omitempty"`
}
