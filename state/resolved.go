package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/state/keys"
)

// SetResolved records an operator's answer to a failed hook, which it returns. The hook runs again if retry
// is true; otherwise it counts as done. relation is the name or id of a relation in error; empty for an
// error of the unit itself. A later answer replaces this one until the agent acts on it. For a unit that
// waits since it was restored, it also accepts the differences, so that the unit goes on.
//
// It returns ErrNotFound if there is no such unit or relation, ErrNotInError if nothing has failed, and
// ErrAlreadyResolved if the answer is the same as before. The last two carry a message for the operator and
// are no mistake of theirs.
func (tx *Tx) SetResolved(unit, relation string, retry bool) (failed Hook, err error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return failed, err
	}

	answer := ResolvedDone
	if retry {
		answer = ResolvedRetry
	}
	if relation != "" {
		return tx.resolveRelation(u, relation, answer)
	}

	restored, err := tx.acceptRestored(unit)
	if err != nil {
		return failed, err
	}

	w, err := tx.Workflow(unit)
	switch {
	case err != nil || restored && w.Failure == nil:
		return failed, err
	case w.Failure == nil:
		return failed, refuse(ErrNotInError, "unit %q is already running", unit)
	case u.Resolved == answer:
		return failed, refuse(ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}

	u.Resolved = answer
	return w.Failure.Hook, tx.keys.Put(keys.Unit(unit), u)
}

func (tx *Tx) resolveRelation(u Unit, text string, answer Resolved) (failed Hook, err error) {
	r, err := tx.relationOf(u, text)
	if err != nil {
		return failed, err
	}

	st, _, err := tx.RelationState(u.Name, r.ID)
	switch {
	case err != nil:
		return failed, err
	case st.Failure == nil:
		return failed, refuse(ErrNotInError, "%s of unit %q is already running", r, u.Name)
	case u.ResolvedRelations[r.ID] == answer:
		return failed, refuse(ErrAlreadyResolved, "%s of unit %q is already marked as resolved", r, u.Name)
	}

	answers := map[int]Resolved{}
	maps.Copy(answers, u.ResolvedRelations)
	answers[r.ID] = answer
	u.ResolvedRelations = answers
	return st.Failure.Hook, tx.keys.Put(keys.Unit(u.Name), u)
}

// relationOf finds a relation of the unit's service by "relation-3", "3", "db:3" or
// "db"; a name of several is an error that lists them.
func (v *View) relationOf(u Unit, text string) (Relation, error) {
	name, number, _ := strings.Cut(text, ":")
	id, err := strconv.Atoi(cmp.Or(number, strings.TrimPrefix(text, "relation-")))
	byID := err == nil
	found, err := v.findRelations(u.Service, func(n int, index relationIndex) bool {
		return byID && n == id || !byID && index.Name == name
	})

	switch {
	case err != nil:
		return Relation{}, err
	case len(found) == 0:
		return Relation{}, refuse(ErrNotFound, "Relation not found")
	case len(found) == 1:
		return found[0], nil
	}

	return Relation{}, fmt.Errorf("relation %q of unit %q is ambiguous: it could be %s",
		text, u.Name, describeRelations(found))
}

// ClearResolved removes the answer to the unit's error, or with a relation's id to the
// relation's; relation is NoRelation for the unit's own.
func (tx *Tx) ClearResolved(unit string, relation int) error {
	u, err := tx.Unit(unit)
	if err != nil {
		return IgnoreNotFound(err)
	}

	if relation == NoRelation {
		u.Resolved = Unresolved
	} else {
		u.ResolvedRelations = maps.Clone(u.ResolvedRelations)
		delete(u.ResolvedRelations, relation)
	}

	return tx.keys.Put(keys.Unit(unit), u)
}

// SkippedHook finds the newest failed hook of a unit, or with relation (its name or id) of
// one of its relations, that counts as done and has not run since with success. It returns
// false if there is none among the hooks that are remembered, or if something still waits
// for an operator's answer. It returns ErrNotFound if there is no such unit or relation.
func (v *View) SkippedHook(unit, relation string) (HookRun, bool, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return HookRun{}, false, err
	}

	of := ""
	if relation != "" {
		r, err := v.relationOf(u, relation)
		if err != nil {
			return HookRun{}, false, err
		}
		of = r.String()
	}

	runs, err := v.HookRuns(unit)
	if err != nil {
		return HookRun{}, false, err
	}

	skipped, ok := findSkipped(runs, of)
	return skipped, ok, nil
}

// findSkipped takes the oldest run first. update-status never is in error: there is always another.
func findSkipped(runs []HookRun, relation string) (HookRun, bool) {
	type subject struct{ hook, relation, remote string }
	succeeded := map[subject]bool{}

	for _, r := range slices.Backward(runs) {
		of := subject{r.Hook, r.Relation, r.Remote}
		if r.Failure == "" {
			succeeded[of] = true
			continue
		}
		if r.Relation == relation && r.Hook != "update-status" && !succeeded[of] {
			return r, true
		}
	}

	return HookRun{}, false
}
