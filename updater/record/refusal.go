package record

import "time"

// CheckFailure explains why the last look for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Refused is the release that is not taken because of that, once it was told.
	Refused string `json:"refused,omitempty"`
}

// Refusal explains why a release that is published cannot be installed as it is.
type Refusal struct {
	Version string    `json:"version"`
	Sums    string    `json:"sums,omitempty"` // the digest of its SHA256SUMS, if that is known
	Why     string    `json:"why"`
	At      time.Time `json:"at"` // when it was found first
}

// Refusals are the releases that are refused, the newest first, in info/refused. That they were
// reported is written with them.
type Refusals struct {
	Releases []Refusal `json:"releases"`
}

// MaxRefusals is the number of releases that are remembered as refused.
const MaxRefusals = 8
