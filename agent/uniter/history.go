package uniter

import (
	"errors"
	"fmt"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/state"
)

// runRecord describes a hook that has ended, for the unit's history.
type runRecord struct {
	state.HookRun
	unlisted bool   // left out of the history: an action, a command, or a hook that the charm does not have
	orphaned bool   // the agent died before the hook's process had ended
	stderr   string // the last line on stderr
	logged   string // the last line that the hook logged as an error; only set if stderr is empty
}

// newRunRecord returns the history's record of a hook whose agent died before the hook's process had ended. The
// hook's exit code and the time of its end are unknown, so the record contains -1 and the current time.
func newRunRecord(op state.Op, failure string) runRecord {
	r := state.HookRun{
		ID:      op.ID,
		Hook:    op.Hook.Name,
		Remote:  hook.Member(op.Hook),
		Started: op.Started,
		Ended:   now(),
		Exit:    -1,
		Failure: failure,
	}

	if op.Hook.Relation != state.NoRelation {
		r.Relation = state.Relation{ID: op.Hook.Relation}.String()
	}
	// Actions and commands have records of their own, so the history leaves them out.
	return runRecord{HookRun: r, unlisted: hook.IsAction(op.Hook), orphaned: true}
}

// runRecord returns the history's record of the hook, whose process has ended. failure is empty if the hook has
// succeeded.
func (r *runningHook) runRecord(failure string) runRecord {
	// newRunRecord assumes that the agent died before the process had ended. Replace the fields that are known here.
	rec := newRunRecord(r.op, failure)
	rec.orphaned = false
	rec.stderr = r.lastStderr
	rec.Said = r.ctx.LastStatus()
	if rec.stderr == "" {
		rec.logged = r.lastLogged.get()
	}

	rec.Ended = r.endedAt.UTC()
	rec.unlisted = r.outcome.Missing || hook.IsAction(r.op.Hook)

	// Without an exit code, Exit stays -1.
	hasExitCode := r.outcome.Failure == "" || r.outcome.Code != 0
	if hasExitCode && !r.outcome.Interrupted {
		rec.Exit = r.outcome.Code
	}
	return rec
}

// withChanges returns the record with the settings that the hook has changed.
func (r runRecord) withChanges(changes []hookctx.Change) runRecord {
	for _, c := range changes {
		owner := c.Node.Unit
		if c.Node.Service != "" {
			owner = c.Node.Service
		}
		relation := state.Relation{ID: c.Node.Relation}.String()
		r.Changes = append(r.Changes, fmt.Sprintf("%s of %s: %s", relation, owner, c))
	}

	return r
}

// addRunRecord adds the record to the unit's history in tx, unless the record is unlisted.
func (u *uniter) addRunRecord(tx *state.Tx, r runRecord) error {
	if r.unlisted {
		return nil
	}
	r.Seq = u.nextSeq // countRunRecord increments it after the commit
	return tx.AddHookRun(u.Unit, r.HookRun)
}

// countRunRecord increments the number of the next record if r was written. err is the error of the commit
// that included r. After errRecorded, r also counts as written, since an earlier attempt of that commit has
// succeeded.
func (u *uniter) countRunRecord(r runRecord, err error) {
	isCommitted := err == nil || errors.Is(err, errRecorded)
	if isCommitted && !r.unlisted {
		u.nextSeq++
	}
}

// readNextSeq returns the number for the unit's next record in its history, from 0.
func readNextSeq(v *state.View, unit string) (int64, error) {
	runs, err := v.HookRuns(unit)
	if err != nil {
		return 0, err
	}
	if len(runs) == 0 {
		return 0, nil
	}
	return runs[len(runs)-1].Seq + 1, nil
}
