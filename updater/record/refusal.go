package record

import "time"

// CheckFailure explains why the last look for releases failed.
type CheckFailure struct {
	Message string    `json:"message"`
	At      time.Time `json:"at"`
	// Kind is what the source did, in one word of package release; "": it is no matter of the source.
	Kind string `json:"kind,omitempty"`
	// Refused is the release that is not taken because of that, once it was told.
	Refused string `json:"refused,omitempty"`
	// Since is when the first of the looks failed of which none has succeeded, Tries is their number,
	// and Again is when the leader looks next. Former versions do not know.
	Since time.Time `json:"since,omitzero"`
	Tries int       `json:"tries,omitempty"`
	Again time.Time `json:"again,omitzero"`
	// Told is set once it was reported that they fail for too long.
	Told bool `json:"told,omitempty"`
}

// minOverdueTries is how many looks have failed at least before that is worth a report: one that comes
// late, since the leader's machine was asleep, tells nothing.
const minOverdueTries = 3

// IsOverdue reports whether looks for releases have failed for that long or longer.
func (f CheckFailure) IsOverdue(maxAge time.Duration) bool {
	return f.Tries >= minOverdueTries && !f.Since.IsZero() && f.At.Sub(f.Since) >= maxAge
}

// Withdrawn describes that servers have a release that is newer than all that are published: it was
// published by mistake, say, taken, and deleted. It is in info/withdrawn, and was reported with that.
type Withdrawn struct {
	Version string    `json:"version"`
	Newest  string    `json:"newest,omitempty"` // of those that are published; "": there is none
	At      time.Time `json:"at"`               // when that was found first
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
