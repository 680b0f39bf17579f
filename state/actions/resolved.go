package actions

import (
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SetResolved records an operator's answer to a failed hook, and returns the hook. With retry, the hook runs
// again; otherwise it counts as done. relation is the name or id of a relation in error, or empty for the
// unit's own error. A later answer replaces this one until the agent acts on it. If the unit is waiting after
// it was restored, SetResolved also accepts the differences, so that the unit continues.
//
// It returns [state.ErrNotFound] if there is no such unit or relation, [state.ErrNotInError] if nothing has
// failed, and [state.ErrAlreadyResolved] if the same answer is already recorded. The last two are messages
// for the operator, and not failures.
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

// resolveRelation records the answer to the error of a unit's relation, and returns the hook that failed.
// text names the relation. It returns [state.ErrNotInError] or [state.ErrAlreadyResolved] if there is nothing
// to answer.
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

// SkippedHook finds the newest recorded run of a unit's hook that failed, if that hook has not succeeded
// since. relation is the name or id of a relation, for the hooks of that relation, or empty for the unit's
// own hooks. It returns false if there is no such run. It returns [state.ErrNotFound] if there is no such
// unit or relation.
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

// findSkipped finds the newest failed run of a hook that has not succeeded since. runs are in order, the
// oldest first. It ignores update-status, whose failure does not put a unit into error. It returns ok false
// if there is no such run.
func findSkipped(runs []state.HookRun, relation string) (skipped state.HookRun, ok bool) {
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
