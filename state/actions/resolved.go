package actions

import (
	"errors"
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// SetResolved records an operator's answer to a failed hook, and returns the hook. If retry is true, the hook
// runs again. Otherwise it counts as done. relation is the name or id of a relation in error, or empty for
// the unit's own error. Until the agent acts on an answer, a later answer replaces it.
//
// If relation is empty and the unit was restored from a backup, SetResolved also accepts any difference
// between the unit's directory and the restored records, so that the unit can continue. If it only accepts
// the difference, it returns the zero hook.
//
// It returns [state.ErrNotFound] if there is no such unit or relation, [state.ErrNotInError] if no hook has
// failed and there is nothing to accept, and [state.ErrAlreadyResolved] if the same answer is already
// recorded, or an operator has already accepted any difference. The last two are messages for the operator,
// and not failures.
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

	accepted, acceptErr := tx.AcceptRestored(unit)
	wasAccepted := errors.Is(acceptErr, state.ErrAlreadyResolved) // by an earlier call; the answer below can still differ
	if acceptErr != nil && !wasAccepted {
		return failed, acceptErr
	}

	w, err := tx.Workflow(unit)
	if err != nil {
		return failed, err
	}
	if w.Failure == nil {
		if wasAccepted {
			return failed, acceptErr
		}
		if accepted { // the request has had an effect, although no hook has failed
			return failed, nil
		}
		return failed, keyspace.Refuse(state.ErrNotInError, "unit %q is already running", unit)
	}
	if u.Resolved == answer {
		return failed, keyspace.Refuse(state.ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}

	u.Resolved = answer
	return w.Failure.Hook, tx.Keys().Put(keys.Unit(unit), u)
}

// resolveRelation records the answer to the failed hook of a unit's relation, and returns the hook. relation
// is the name or id of the relation. It returns [state.ErrNotFound] if there is no such relation,
// [state.ErrNotInError] if no hook of the relation has failed, and [state.ErrAlreadyResolved] if the same
// answer is already recorded.
func resolveRelation(tx *state.Tx, u state.Unit, relation string, answer state.Resolved) (failed state.Hook, err error) {
	r, err := tx.RelationOf(u, relation)
	if err != nil {
		return failed, err
	}

	rs, _, err := tx.RelationState(u.Name, r.ID)
	if err != nil {
		return failed, err
	}
	if rs.Failure == nil {
		return failed, keyspace.Refuse(state.ErrNotInError, "%s of unit %q is already running", r, u.Name)
	}
	if u.ResolvedRelations[r.ID] == answer {
		return failed, keyspace.Refuse(state.ErrAlreadyResolved, "%s of unit %q is already marked as resolved", r, u.Name)
	}

	answers := map[int]state.Resolved{} // the map of a unit without answers is nil
	maps.Copy(answers, u.ResolvedRelations)
	answers[r.ID] = answer
	u.ResolvedRelations = answers
	return rs.Failure.Hook, tx.Keys().Put(keys.Unit(u.Name), u)
}

// SkippedHook finds the newest failed run of a hook in a unit's history, among the hooks that have not
// succeeded since. relation is the name or id of a relation, for the hooks of that relation, or empty for the
// unit's own hooks. SkippedHook ignores update-status, and returns false if there is no such run. It returns
// [state.ErrNotFound] if there is no such unit or relation.
func SkippedHook(v *state.View, unit, relation string) (state.HookRun, bool, error) {
	u, err := v.Unit(unit)
	if err != nil {
		return state.HookRun{}, false, err
	}

	runRelation := "" // the relation as runs record it
	if relation != "" {
		r, err := v.RelationOf(u, relation)
		if err != nil {
			return state.HookRun{}, false, err
		}
		runRelation = r.String()
	}

	runs, err := v.HookRuns(unit)
	if err != nil {
		return state.HookRun{}, false, err
	}

	skipped, ok := findSkipped(runs, runRelation)
	return skipped, ok, nil
}

// findSkipped finds the newest failed run of a hook of the relation, among the hooks that have not succeeded
// since. runs are in order, the oldest first. relation is as runs record it, and empty for the unit's own
// hooks. findSkipped ignores update-status, since a failure of that hook does not put a unit into an error
// state. ok is false if there is no such run.
func findSkipped(runs []state.HookRun, relation string) (skipped state.HookRun, ok bool) {
	type identity struct{ hook, relation, remote string }
	succeeded := map[identity]bool{}

	for _, r := range slices.Backward(runs) {
		id := identity{r.Hook, r.Relation, r.Remote}
		if r.Failure == "" {
			succeeded[id] = true
			continue
		}

		isCandidate := r.Relation == relation && r.Hook != "update-status"
		if isCandidate && !succeeded[id] {
			return r, true
		}
	}

	return state.HookRun{}, false
}
