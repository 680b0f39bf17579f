package uniter

import (
	"errors"
	"fmt"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/state"
)

// runRecord is how a hook has ended, for the unit's history.
type runRecord struct {
	state.HookRun
	unlisted bool   // not for the history: an action, a command, or a hook that the charm does not have
	orphaned bool   // its agent died before its process had ended
	stderr   string // the last line on stderr
	logged   string // the last line that it logged as an error, if stderr is empty
}

// newRunRecord returns the history's record of a hook that has ended while no agent was watching its process.
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
	return runRecord{HookRun: r, unlisted: hook.IsAction(op.Hook), orphaned: true}
}

// runRecord returns the history's record of the hook that has ended.
func (r *runningHook) runRecord(failure string) runRecord {
	p := newRunRecord(r.op, failure)
	p.orphaned = false
	p.stderr = r.lastStderr
	p.Said = r.ctx.Said()
	if p.stderr == "" {
		p.logged = r.lastLogged.get()
	}

	p.Ended, p.unlisted = r.endedAt.UTC(), r.outcome.Missing || hook.IsAction(r.op.Hook)
	if !r.outcome.Interrupted && (r.outcome.Failure == "" || r.outcome.Code != 0) {
		p.Exit = r.outcome.Code
	}
	return p
}

// withChanges returns the record with the settings that the hook has changed.
func (r runRecord) withChanges(changes []hookctx.Change) runRecord {
	for _, c := range changes {
		of := c.Node.Unit
		if c.Node.Service != "" {
			of = c.Node.Service
		}
		r.Changes = append(r.Changes, fmt.Sprintf("%s of %s: %s", state.Relation{ID: c.Node.Relation}, of, c))
	}

	return r
}

func (u *uniter) addRunRecord(tx *state.Tx, r runRecord) error {
	if r.unlisted {
		return nil
	}
	r.Seq = u.nextSeq
	return tx.AddHookRun(u.Unit, r.HookRun)
}

// countRunRecord moves on to the number of the next record once r is written. err is that of the commit
// that wrote r. A commit whose answer was lost counts as well, once a repetition finds its record.
func (u *uniter) countRunRecord(r runRecord, err error) {
	if !r.unlisted && (err == nil || errors.Is(err, errRecorded)) {
		u.nextSeq++
	}
}

func readNextSeq(v *state.View, unit string) (int64, error) {
	runs, err := v.HookRuns(unit)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	return runs[len(runs)-1].Seq + 1, nil
}
