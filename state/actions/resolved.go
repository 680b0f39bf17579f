package actions

import (
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SetResolved records an operator's answer to a failed hook, which it returns. The hook runs again if retry
// is true; otherwise it counts as done. relation is the name or id of a relation in error; empty for an
// error of the unit itself. A later answer replaces this one until the agent acts on it. For a unit that
// waits since it was restored, it also accepts the differences, so that the unit goes on.
//
// It returns state.ErrNotFound if there is no such unit or relation, state.ErrNotInError if nothing has
// failed, and state.ErrAlreadyResolved if the answer is the same as before. The last two carry a message for
// the operator and are no mistake of theirs.
func SetResolved(tx *state.Tx, unit, relation string, retry bool) (failed state.Hook, err error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return failed, err
	}

	answer := state.ResolvedDone
	if retry {
		answer = state.ResolvedRetry
	}
	if relation != "" {
		return resolveRelation(tx, u, relation, answer)
	}

	restored, err := tx.AcceptRestored(unit)
	if err != nil {
		return failed, err
	}

	w, err := tx.Workflow(unit)
	switch {
	case err != nil || restored && w.Failure == nil:
		return failed, err
	case w.Failure == nil:
		return failed, keyspace.Refuse(state.ErrNotInError, "unit %q is already running", unit)
	case u.Resolved == answer:
		return failed, keyspace.Refuse(state.ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}

	u.Resolved = answer
	return w.Failure.Hook, tx.Keys().Put(keys.Unit(unit), u)
}

func resolveRelation(tx *state.Tx, u state.Unit, text string, answer state.Resolved) (failed state.Hook, err error) {
	r, err := tx.RelationOf(u, text)
	if err != nil {
		return failed, err
	}

	st, _, err := tx.RelationState(u.Name, r.ID)
	switch {
	case err != nil:
		return failed, err
	case st.Failure == nil:
		return failed, keyspace.Refuse(state.ErrNotInError, "%s of unit %q is already running", r, u.Name)
	case u.ResolvedRelations[r.ID] == answer:
		return failed, keyspace.Refuse(state.ErrAlreadyResolved, "%s of unit %q is already marked as resolved", r, u.Name)
	}

	answers := map[int]state.Resolved{}
	maps.Copy(answers, u.ResolvedRelations)
	answers[r.ID] = answer
	u.ResolvedRelations = answers
	return st.Failure.Hook, tx.Keys().Put(keys.Unit(u.Name), u)
}

// SkippedHook finds the newest failed hook of a unit, or with relation (its name or id) of
// one of its relations, that counts as done and has not run since with success. It returns
// false if there is none among the hooks that are remembered, or if something still waits
// for an operator's answer. It returns state.ErrNotFound if there is no such unit or
// relation.
func SkippedHook(v *state.View, unit, relation string) (state.HookRun, bool, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return state.HookRun{}, false, err
	}

	of := ""
	if relation != "" {
		r, err := v.RelationOf(u, relation)
		if err != nil {
			return state.HookRun{}, false, err
		}
		of = r.String()
	}

	runs, err := v.HookRuns(unit)
	if err != nil {
		return state.HookRun{}, false, err
	}

	skipped, ok := findSkipped(runs, of)
	return skipped, ok, nil
}

// findSkipped takes the oldest run first. update-status never is in error: there is always another.
func findSkipped(runs []state.HookRun, relation string) (state.HookRun, bool) {
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

	return state.HookRun{}, false
}
