package decide

import (
	"fmt"
	"time"

	"bijou/updater"
	"bijou/updater/keys"
	"bijou/updater/record"
)

// Look is how a look for releases has ended.
type Look struct {
	Failure string // why it failed; "": it did not
	Kind    string // of what kind that is, as record.CheckFailure has it
	Missed  string // the version that servers would take, which cannot be had; "": none
	At      time.Time
	Again   time.Time     // when the next one is
	MaxAge  time.Duration // for how long looks may fail
	Hint    string        // what to type once they have failed for longer
}

// NoteLook records the result of a look for releases. was is the record of the last failure; nil if the
// last look succeeded. It alerts once for each release that cannot be fetched, once when looks have failed
// for too long, and once when that ends. The record holds which alerts were raised, and is written together
// with them.
func NoteLook(was *record.CheckFailure, l Look) []updater.Change {
	if l.Failure == "" {
		return endFailure(was, l)
	}

	var before record.CheckFailure
	if was != nil {
		before = *was
	}
	f := record.CheckFailure{
		Message: l.Failure,
		Kind:    l.Kind,
		At:      l.At,
		Refused: before.Refused,
		Since:   before.Since,
		Tries:   before.Tries + 1,
		Again:   l.Again,
		Told:    before.Told,
	}

	if f.Since.IsZero() {
		f.Since = before.At // a former version has written it
	}
	if f.Since.IsZero() || f.Since.After(l.At) {
		f.Since = l.At
	}

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

// endFailure returns the changes that end a failure to look for releases. If an alert was sent about the
// failure, they include one about its end.
func endFailure(was *record.CheckFailure, l Look) []updater.Change {
	if was == nil {
		return nil
	}

	changes := []updater.Change{updater.Remove(keys.CheckFailure)}
	if was.Told {
		why := fmt.Sprintf("releases can be looked for again, after %s", l.At.Sub(was.Since).Truncate(time.Second))
		changes = append(changes, newLookAlert(record.AlertNoReleases, "", l.At, why))
	}
	return changes
}

// newLookAlert returns the alert of that kind and time.
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

// NoteWithdrawn records the release that servers have although it is no longer published; now is nil if
// there is none. It alerts once for each version.
func NoteWithdrawn(was, now *record.Withdrawn, at time.Time) []updater.Change {
	switch {
	case now == nil && was == nil:
		return nil
	case now == nil:
		return []updater.Change{updater.Remove(keys.Withdrawn)}
	}

	w := *now
	w.At = at
	known := was != nil && was.Version == w.Version
	if known {
		w.At = was.At
	}
	if known && *was == w {
		return nil
	}

	changes := []updater.Change{updater.Put(keys.Withdrawn, w)}
	if !known {
		t := withdrawnTrouble(w)
		changes = append(changes, newLookAlert(record.AlertNoReleases, w.Version, at, withHint(t.Why, t.Hint)))
	}
	return changes
}
