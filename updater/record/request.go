package record

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Request is the update that runs or ran last, in status/current. Other programs know its
// first three fields.
type Request struct {
	Version string `json:"version"` // to which all servers go
	Servers []int  `json:"servers"` // the list as it was at the beginning, in numeric order
	Stop    bool   `json:"stop"`    // workers stop, and the leader waits for an operator

	// Digests are of the release: workers take no other bytes.
	Digests

	// ID is the request's number, the same as its entry's in the history. Status
	// records of other requests do not count.
	ID int `json:"id"`
	// Attempt counts from 1; retrying a failed step makes the next one.
	Attempt int `json:"attempt"`
	// StartedAt, AttemptAt (when the attempt began) and EndedAt are by the leader's clock. EndedAt
	// is set together with the report of the end, good or bad, and taken away by a retry.
	StartedAt time.Time  `json:"started-at"`
	AttemptAt time.Time  `json:"progress-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	// Repair says that it brings servers back to what the update before has left. Steps of
	// other components than Components are passed; if there are none, no step is.
	Repair     bool     `json:"repair,omitempty"`
	Components []string `json:"components,omitempty"`
	// Why says why it was stopped.
	Why string `json:"why,omitempty"`
	// Missing are servers that were reported to have no worker alive.
	Missing []int `json:"missing,omitempty"`
}

// Identity tells one request from the next, which takes its place.
func (r Request) Identity() any { return [2]int64{int64(r.ID), r.StartedAt.UnixNano()} }

// Ended reports whether the request's end was reported.
func (r Request) Ended() bool { return r.EndedAt != nil }

// Succeeded reports whether all servers have done all steps.
func (r Request) Succeeded() bool { return r.Ended() && !r.Stop }

// IsCurrent reports whether that attempt at the request still runs: now is the stored request.
func IsCurrent(now *Request, r Request) bool {
	return now != nil && now.ID == r.ID && now.StartedAt.Equal(r.StartedAt) && now.Attempt == r.Attempt &&
		!now.Stop && !now.Ended()
}

// Progress returns a number that grows with everything that a server does for the request, by the records
// of their workers.
func (r Request) Progress(workers map[int]Status) (n int) {
	for _, lrn := range r.Servers {
		w, ok := workers[lrn]
		if !ok || !w.IsFor(r) {
			continue
		}

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
		return 0, fmt.Errorf("cannot take %q for a boot server: an LRN is a number from 0 to %d", s, MaxLRN)
	}
	return n, nil
}

// ParseServerKey returns the boot server that the key names right below the prefix, and
// false if it names none.
func ParseServerKey(prefix, key string) (lrn int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	lrn, err := ParseLRN(rest)
	return lrn, err == nil
}

// SortServers returns the servers in numeric order, each once.
func SortServers(lrns []int) []int {
	sorted := slices.Clone(lrns)
	slices.Sort(sorted)
	return slices.Compact(sorted)
}

// ListServers writes servers as operators read them: "1, 2 and 10".
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

// Target is a version that an operator asked for. It is offered until a release appears
// that is newer than Passed, the newest one when it was asked for.
type Target struct {
	Version   string `json:"version"`
	Downgrade bool   `json:"allow-downgrade,omitempty"`
	Passed    string `json:"passed,omitempty"`
	Sums      string `json:"sums,omitempty"` // the digest of its SHA256SUMS then
	Who       string `json:"who,omitempty"`
}

// Contents is the result of what one server did for all, in contents/<name>.
type Contents struct {
	Version string `json:"version"`
	Success bool   `json:"success"`

	Plan    string `json:"plan,omitempty"`    // the digest of the plan that asked for it
	Server  int    `json:"server,omitempty"`  // who did it
	Message string `json:"message,omitempty"` // why it failed
}

// Identity tells one result from the next: each is one server's.
func (c Contents) Identity() any { return c }

// Digests are SHA-256 sums, in hexadecimal, of what a release consists of. "" is not
// known, which is no difference: former versions knew none.
type Digests struct {
	Sums string `json:"sums,omitempty"` // of SHA256SUMS, as it was verified
	Plan string `json:"plan,omitempty"` // of the manifest in its canonical form
}

// Differ reports whether the digests are known and not the same.
func Differ(a, b string) bool { return a != "" && b != "" && a != b }

// ShortDigest returns as much of a digest as people need.
func ShortDigest(d string) string {
	if d == "" {
		return "unknown"
	}
	return d[:min(12, len(d))]
}

// Published has the digests that the leader has found for a release at its last look.
type Published struct {
	Version string `json:"version"`
	Digests
	// Checked is the version of the leader that has found the release to be installable. Former
	// versions did not look.
	Checked string `json:"checked,omitempty"`
}

// Identity tells one release from the next.
func (p Published) Identity() any { return p }

// The results in a History.
const (
	Running   = "running"
	Succeeded = "succeeded"
	Stopped   = "stopped"
	Recovered = "recovered" // stopped, and made again as another request
)

// History is one update, kept for good. Its end is its last attempt's.
type History struct {
	ID   int    `json:"id"`
	By   string `json:"by"`            // "release", "operator", "servers" (the list changed), "recover"
	Who  string `json:"who,omitempty"` // whose wish it was, if somebody's
	From string `json:"from,omitempty"`
	// Left is the version that servers go back from, if that is another one than From: the update to
	// it did not succeed.
	Left      string     `json:"left,omitempty"`
	To        string     `json:"to"`
	Servers   []int      `json:"servers"`
	Result    string     `json:"result"`
	Why       string     `json:"why,omitempty"`
	AtFault   []int      `json:"at-fault,omitempty"` // the servers that it was stopped for
	StartedAt time.Time  `json:"started-at"`
	EndedAt   *time.Time `json:"ended-at,omitempty"`
	Attempts  []Attempt  `json:"attempts,omitempty"` // the oldest first
	// Dropped is how many attempts were left out, the oldest ones of very many.
	Dropped int `json:"dropped-attempts,omitempty"`
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

// Identity tells one attempt from the next.
func (a Attempt) Identity() any { return a.Number }

// Begin adds a running attempt.
func (h *History) Begin(number int, who string, now time.Time) {
	h.Result = Running
	h.Why = ""
	h.AtFault = nil
	h.EndedAt = nil
	h.Attempts = append(slices.Clone(h.Attempts), Attempt{ // copies of the History share them
		Number:    number,
		Who:       who,
		Result:    Running,
		StartedAt: now,
	})
	h.condense()
}

// End completes the present attempt. It adds the attempt if it is missing: older versions did not record its
// beginning.
func (h *History) End(a Attempt) {
	h.Result = a.Result
	h.Why = a.Why
	h.AtFault = a.AtFault
	h.EndedAt = a.EndedAt

	attempts := slices.Clone(h.Attempts) // copies of the History share them
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
