package record

import "time"

// CheckFailure explains why the last check for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Kind is the kind of the error, as in package release. It is "" if the source of releases is not the
	// cause.
	Kind string `json:"kind,omitempty"`
	// Refused is the release that is not installed because of the failure. It is set once an alert has
	// reported this.
	Refused string `json:"refused,omitempty"`
	// Since is the time of the first failure since the last success, and Tries counts the failures since
	// then. Again is the time of the next check. Earlier versions do not write these fields.
	Since time.Time `json:"since,omitzero"`
	Tries int       `json:"tries,omitempty"`
	Again time.Time `json:"again,omitzero"`
	// Told is set once an alert has reported that checks have failed for too long.
	Told bool `json:"told,omitempty"`
}

// minOverdueTries is the minimum number of failures before a report. A single late check may only mean that
// the leader's machine was suspended.
const minOverdueTries = 3

// IsOverdue reports whether checks for releases have failed for maxAge or longer, and at least minOverdueTries
// times. It returns false if an earlier version has written f without the time of the first failure.
func (f CheckFailure) IsOverdue(maxAge time.Duration) bool {
	return f.Tries >= minOverdueTries && !f.Since.IsZero() && f.At.Sub(f.Since) >= maxAge
}

// Withdrawn records that the installed release is newer than all published ones. This happens if a release is
// published by mistake, installed, and then deleted. It is stored in info/withdrawn, and is written together
// with its alert.
type Withdrawn struct {
	Version string `json:"version"`
	// Newest is the newest published release, or "" if no release is published.
	Newest string    `json:"newest,omitempty"`
	At     time.Time `json:"at"` // when this was first found
}

// Refusal explains why a published release cannot be installed as it is.
type Refusal struct {
	Version string    `json:"version"`
	Sums    string    `json:"sums,omitempty"` // the digest of its SHA256SUMS, if known
	Why     string    `json:"why"`
	At      time.Time `json:"at"` // when the refusal was first found
}

// Refusals are the refused releases, the newest first, in info/refused. They are written together with their
// alerts.
type Refusals struct {
	Releases []Refusal `json:"releases"`
}

// MaxRefusals is the maximum number of refused releases in the record.
const MaxRefusals = 8
