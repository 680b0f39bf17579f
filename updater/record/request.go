package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is the running or last update, in status/current. Other programs use its first three fields.
type Request struct {
	Version string `json:"version"` // the version to install
	Servers []int  `json:"servers"` // the registered servers when the update began, in numeric order
	Stop    bool   `json:"stop"`    // the update is stopped and waits for an operator

	// Digests are the digests of the release. Workers install no other files.
	Digests

	// ID is the number of the request and of its entry in the history. Status records of other requests
	// are ignored.
	ID int `json:"id"`
	// Attempt starts at 1. Each retry increments it.
	Attempt int `json:"attempt"`
	// StartedAt, AttemptAt (when the attempt began) and EndedAt are times by the leader's clock. EndedAt is
	// set together with the report of success or failure. A retry resets EndedAt.
	StartedAt time.Time  `json:"started-at"`
	AttemptAt time.Time  `json:"progress-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	// Repair is set if the update restores the state that the previous update left. Only the steps of
	// Components run, or all steps if Components is empty.
	Repair     bool     `json:"repair,omitempty"`
	Components []string `json:"components,omitempty"`
	// Why is the reason why the update was stopped.
	Why string `json:"why,omitempty"`
	// Missing are the servers that were reported to have no live worker.
	Missing []int `json:"missing,omitempty"`
}

// Identity implements carry.Identified: a new request keeps no unknown fields of the previous one.
func (r Request) Identity() any { return [2]int64{int64(r.ID), r.StartedAt.UnixNano()} }

// Ended reports whether the request has ended, with success or failure, and its report was written.
func (r Request) Ended() bool { return r.EndedAt != nil }

// Succeeded reports whether all servers have done all steps.
func (r Request) Succeeded() bool { return r.Ended() && !r.Stop }

// IsCurrent reports whether the attempt that r describes is still running, given the stored request, which
// can be nil.
func IsCurrent(stored *Request, r Request) bool {
	if stored == nil || stored.Stop || stored.Ended() {
		return false
	}
	return stored.ID == r.ID && stored.StartedAt.Equal(r.StartedAt) && stored.Attempt == r.Attempt
}

// Progress returns a number that grows whenever a server makes progress in the request. It is computed from the
// workers' records.
func (r Request) Progress(workers map[int]Status) (n int) {
	for _, lrn := range r.Servers {
		w, ok := workers[lrn]
		if !ok || !w.IsFor(r) {
			continue
		}

		// Each step counts twice, which leaves a number between two steps for the end and for a hand-over.
		n += 2 + 2*w.Step
		if w.Finished || w.HandsOver() {
			n++
		}
	}

	return n
}

// MaxLRN is the greatest logical rack number.
const MaxLRN = 999_999

// ParseLRN parses a boot server's logical rack number. It must be a decimal number from 0 to MaxLRN without
// sign or leading zeros, so that each server has one key.
func ParseLRN(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > MaxLRN || strconv.Itoa(n) != s {
		return 0, fmt.Errorf("%q cannot be a boot server: an LRN is a number from 0 to %d", s, MaxLRN)
	}
	return n, nil
}

// ParseServerKey returns the boot server whose LRN follows the prefix in the key. It returns false if no
// LRN follows.
func ParseServerKey(prefix, key string) (lrn int, ok bool) {
	suffix, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	lrn, err := ParseLRN(suffix)
	return lrn, err == nil
}

// SortServers returns the servers in numeric order, without duplicates.
func SortServers(lrns []int) []int {
	sorted := slices.Clone(lrns)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// ListServers formats servers for operators: "1, 2 and 10".
func ListServers(lrns []int) string {
	var words []string
	for _, n := range SortServers(lrns) {
		words = append(words, strconv.Itoa(n))
	}
	if len(words) < 2 {
		return strings.Join(words, "")
	}

	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// Target is a version that an operator requested. It is in force until a release appears that is newer than
// Passed, which was the newest release at the time of the operator's command.
type Target struct {
	Version   string `json:"version"`
	Downgrade bool   `json:"allow-downgrade,omitempty"`
	Passed    string `json:"passed,omitempty"`
	// Sums is the digest of the version's SHA256SUMS at the time of the command.
	Sums string `json:"sums,omitempty"`
	Who  string `json:"who,omitempty"`
}

// Contents is the result of a step that one server runs on behalf of all, in contents/<name>.
type Contents struct {
	Version string `json:"version"`
	Success bool   `json:"success"`

	Plan    string `json:"plan,omitempty"`    // the digest of the plan with that step
	Server  int    `json:"server,omitempty"`  // the server that ran the step
	Message string `json:"message,omitempty"` // why the step failed
}

// Identity implements carry.Identified: a different result, which may come from another server, keeps no unknown
// fields of the previous one.
func (c Contents) Identity() any { return c }

// Digests are the SHA-256 digests of a release's files, in hexadecimal. "" means unknown, since earlier
// versions did not record them. An unknown digest counts as equal to any digest.
type Digests struct {
	Sums string `json:"sums,omitempty"` // of SHA256SUMS, after its signature was verified
	Plan string `json:"plan,omitempty"` // of the manifest in its canonical form
}

// Differ reports whether both digests are known and differ.
func Differ(a, b string) bool { return a != "" && b != "" && a != b }

// ShortDigest returns the first characters of a digest, which are enough for people to recognize it.
func ShortDigest(d string) string {
	if d == "" {
		return "unknown"
	}
	return d[:min(12, len(d))]
}

// Published has the digests that the leader found for a release at its last check.
type Published struct {
	Version string `json:"version"`
	Digests
	// Checked is the version of the leader that found the release to be installable. Earlier versions did not
	// check this.
	Checked string `json:"checked,omitempty"`
}

// Identity implements carry.Identified: a different record keeps no unknown fields of the previous one.
func (p Published) Identity() any { return p }

// The results in a History.
const (
	Running   = "running"
	Succeeded = "succeeded"
	Stopped   = "stopped"
	Recovered = "recovered" // stopped, and replaced by a new request
)

// History is the permanent record of one update. EndedAt is the end of the last attempt.
type History struct {
	ID   int    `json:"id"`
	By   string `json:"by"`             // the reason for the update, such as "release" or "operator"
	Who  string `json:"who,omitempty"`  // the operator who requested the update, if any
	From string `json:"from,omitempty"` // the version before the update
	// Left is the version of the failed update, from which the servers return to an earlier version. It is
	// set only if it differs from From.
	Left    string `json:"left,omitempty"`
	To      string `json:"to"`
	Servers []int  `json:"servers"`
	Result  string `json:"result"`
	// Why is the reason why the update was stopped.
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that caused the stop
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	Attempts  []Attempt  `json:"attempts,omitempty"` // the oldest first
	// Dropped is the number of oldest attempts that were left out because there were too many.
	Dropped int `json:"dropped-attempts,omitempty"`
}

// Attempt is one attempt at an update.
type Attempt struct {
	Number    int        `json:"number"`
	Who       string     `json:"who,omitempty"` // the operator who requested the attempt, if any
	Result    string     `json:"result"`
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that caused the stop
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
}

// Identity implements carry.Identified: each attempt in the list keeps its own unknown fields.
func (a Attempt) Identity() any { return a.Number }

// Begin adds a running attempt, and shows the whole update as running. It shortens the reasons of earlier
// attempts, or drops these attempts, if they have become too long for the record.
func (h *History) Begin(number int, who string, now time.Time) {
	h.Result = Running
	h.Why = ""
	h.AtFault = nil
	h.EndedAt = nil
	// Copies of the History share the slice, so it is not changed in place.
	h.Attempts = append(slices.Clone(h.Attempts), Attempt{
		Number:    number,
		Who:       who,
		Result:    Running,
		StartedAt: now,
	})
	h.condense()
}

// End gives the whole update the result of attempt a. If the last recorded attempt has a's number, End completes it,
// and keeps its Who and StartedAt. Otherwise End adds a, since earlier versions did not record when an attempt began.
// Like Begin, it shortens or drops earlier attempts if necessary.
func (h *History) End(a Attempt) {
	h.Result = a.Result
	h.Why = a.Why
	h.AtFault = a.AtFault
	h.EndedAt = a.EndedAt

	// Copies of the History share the slice, so it is not changed in place.
	attempts := slices.Clone(h.Attempts)
	if last := len(attempts) - 1; last >= 0 && attempts[last].Number == a.Number {
		a.Who = attempts[last].Who
		a.StartedAt = attempts[last].StartedAt
		attempts[last] = a
	} else {
		attempts = append(attempts, a)
	}

	h.Attempts = attempts
	h.condense()
}

// Audit records one action of an operator, in audit/<n>. It is written in the transaction of the action,
// and never changed or removed.
type Audit struct {
	ID     int       `json:"id"`
	At     time.Time `json:"at"`               // by the clock of the operator's host
	Who    string    `json:"who"`              // USER@HOST
	What   string    `json:"what"`             // the command
	Detail string    `json:"detail,omitempty"` // the changed object, with its new and old values
	Why    string    `json:"why,omitempty"`    // the reason that the operator gave
}
