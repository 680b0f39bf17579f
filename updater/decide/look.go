package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Look is the result of a check for releases.
type Look struct {
	Failure string // why the check failed, or ""
	Kind    string // the kind of the failure, as in record.CheckFailure
	Missed  string // the version that servers would install but that cannot be fetched, or ""
	At      time.Time
	Again   time.Time     // the time of the next check
	MaxAge  time.Duration // how long checks can fail before an alert
	Hint    string        // the hint of that alert
}

// NoteLook returns the changes that record the result of a check for releases. recorded is the failure of the
// previous check, or nil if that check succeeded. NoteLook adds an alert if servers would install a release that
// cannot be fetched, unless recorded shows an alert about that release. It adds one alert if checks have failed for
// too long, and another when checks then succeed again. The caller must write all changes in one transaction, since
// the record of the failure shows which alerts were written.
func NoteLook(recorded *record.CheckFailure, l Look) []updater.Change {
	if l.Failure == "" {
		return endFailure(recorded, l)
	}

	var before record.CheckFailure
	if recorded != nil {
		before = *recorded
	}
	f := record.CheckFailure{
		Message: l.Failure,
		Kind:    l.Kind,
		At:      l.At,
		Refused: before.Refused,
		Since:   failingSince(before, l.At),
		Tries:   before.Tries + 1,
		Again:   l.Again,
		Told:    before.Told,
	}

	// Refused and Told record the alerts that were written, so that none is written twice.
	var alerts []updater.Change
	if l.Missed != "" && l.Missed != f.Refused {
		f.Refused = l.Missed
		t := missedTrouble(f)
		alerts = append(alerts, newLookAlert(record.AlertRefused, l.Missed, l.At, withHint(t.Why, t.Hint)))
	}

	if f.IsOverdue(l.MaxAge) && !f.Told {
		f.Told = true
		t := outageTrouble(f, l.Hint)
		alerts = append(alerts, newLookAlert(record.AlertNoReleases, "", l.At, withHint(t.Why, t.Hint)))
	}

	return append([]updater.Change{updater.Put(keys.CheckFailure, f)}, alerts...)
}

// failingSince returns the time since which checks have failed, for a check that has failed at the current
// time. before is the recorded failure, or the zero value if the last check succeeded.
func failingSince(before record.CheckFailure, now time.Time) time.Time {
	since := before.Since
	if since.IsZero() {
		// Earlier versions did not record Since.
		since = before.At
	}

	switch {
	case since.IsZero():
		// This is the first failure.
		return now
	case since.After(now):
		// The clock was set back.
		return now
	}
	return since
}

// endFailure returns the changes that record a successful check. recorded is the failure of the previous check,
// or nil if that check succeeded. If there was an alert about the failure, the changes include an alert about
// its end.
func endFailure(recorded *record.CheckFailure, l Look) []updater.Change {
	if recorded == nil {
		return nil
	}

	changes := []updater.Change{updater.Remove(keys.CheckFailure)}
	if recorded.Told {
		why := fmt.Sprintf("checks for releases succeed again, after %s", l.At.Sub(recorded.Since).Truncate(time.Second))
		changes = append(changes, newLookAlert(record.AlertNoReleases, "", l.At, why))
	}
	return changes
}

// newLookAlert returns the change that writes an alert of the given kind and time. version is the release that
// the alert concerns, or "".
func newLookAlert(kind, version string, at time.Time, message string) updater.Change {
	a := record.Alert{
		ID:      fmt.Sprintf("%s-%d", kind, at.UnixNano()),
		Kind:    kind,
		Version: version,
		Message: message,
		At:      at,
	}
	return updater.Put(keys.Alert(a.ID), a)
}

// NoteWithdrawn returns the changes that record whether the installed release is newer than all published ones. found
// is the result of the check at the given time, or nil if there is no such release. recorded is the stored result of the
// previous check, or nil. The result for a version that is already recorded keeps its time, and causes no second
// alert.
func NoteWithdrawn(recorded, found *record.Withdrawn, at time.Time) []updater.Change {
	switch {
	case found == nil && recorded == nil:
		return nil
	case found == nil:
		return []updater.Change{updater.Remove(keys.Withdrawn)}
	}

	w := *found
	w.At = at
	isKnown := recorded != nil && recorded.Version == w.Version
	if isKnown {
		w.At = recorded.At
		if *recorded == w {
			return nil
		}
	}

	changes := []updater.Change{updater.Put(keys.Withdrawn, w)}
	if !isKnown {
		t := withdrawnTrouble(w)
		changes = append(changes, newLookAlert(record.AlertNoReleases, w.Version, at, withHint(t.Why, t.Hint)))
	}
	return changes
}
