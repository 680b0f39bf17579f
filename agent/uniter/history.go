package uniter

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/agent/uniter/decide"
	"bijou/state"
	"bijou/state/metrics"
)

// runRecord is how a hook has ended, for the unit's history.
type runRecord struct {
	state.HookRun
	unlisted bool   // not for the history: an action, a command, or a hook that the charm does not have
	orphaned bool   // its agent died before its process had ended
	stderr   string // the last line on stderr
	logged   string // the last line that it logged as an error, if stderr is empty
}

// newRunRecord is for a hook whose process nobody has seen end.
func newRunRecord(op state.Op, failure string) runRecord {
	r := state.HookRun{ID: op.ID, Hook: op.Hook.Name, Remote: hook.Member(op.Hook), Started: op.Started, Ended: now(), Exit: -1, Failure: failure}
	if op.Hook.Relation != state.NoRelation {
		r.Relation = state.Relation{ID: op.Hook.Relation}.String()
	}
	return runRecord{HookRun: r, unlisted: hook.IsAction(op.Hook), orphaned: true}
}

func (r *runningHook) runRecord(failure string) runRecord {
	p := newRunRecord(r.op, failure)
	p.orphaned, p.stderr, p.Said = false, r.lastStderr, r.ctx.Said()
	if p.stderr == "" {
		p.logged = r.lastLogged.get()
	}
	p.Ended, p.unlisted = r.endedAt.UTC(), r.outcome.Missing || hook.IsAction(r.op.Hook)
	if !r.outcome.Interrupted && (r.outcome.Failure == "" || r.outcome.Code != 0) {
		p.Exit = r.outcome.Code
	}
	return p
}

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

// countRunRecord takes the next record's number once one is written, be it by a commit whose
// answer was lost.
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

func beginLine(op state.Op) string {
	text := op.Hook.String() + " begins"
	if op.Hook.Relation != state.NoRelation {
		text += ", in " + state.Relation{ID: op.Hook.Relation}.String()
	}
	if member := hook.Member(op.Hook); member != "" {
		text += ", about " + member
	}
	if op.Holder != "" {
		text += ", held by " + op.Holder
	}
	return text
}

func (u *uniter) logOutcome(r *runningHook, failure string, changes []hookctx.Change) {
	u.measureHook(r, failure)
	name := r.op.Hook.Name
	defer u.output.Flush()
	for _, c := range changes {
		u.output.Write("INFO", name, c.String())
	}
	switch {
	case failure != "":
		u.Log.Error("hook failed", "hook", name, "error", failure)
	case r.outcome.Missing:
		u.Log.Debug("the charm has no such hook", "hook", name)
		return
	default:
		u.Log.Info("hook is done", "hook", name)
	}
	u.logEnd(r, failure)
}

func (u *uniter) logEnd(r *runningHook, failure string) {
	if r.outcome.Missing {
		return // it has not begun
	}
	name := r.op.Hook.Name
	if o := r.outcome; o.Held > 0 {
		text := fmt.Sprintf("waited %s longer than the hook for a process of it that held its output open", formatDuration(o.Held))
		if o.Left {
			text = fmt.Sprintf("the hook has left a process behind that holds its output open: waited %s for it; "+
				"what it prints from now on is in no log", formatDuration(o.Held))
		}
		u.output.Write("WARNING", name, text)
	}
	took := formatDuration(r.endedAt.Sub(r.op.Started))
	if failure != "" {
		u.output.Write("ERROR", name, fmt.Sprintf("%s failed after %s: %s", r.op.Hook, took, failure))
		return
	}
	u.output.Note("INFO", name, fmt.Sprintf("%s is done after %s", r.op.Hook, took))
}

// logUnrecordedEnd says nothing of a run whose process was never let go: it has not begun.
func (u *uniter) logUnrecordedEnd(op state.Op) {
	if id, err := hookexec.LastRun(u.Folder.ProcessPath()); err == nil && id == op.ID {
		u.output.Write("WARNING", op.Hook.Name, fmt.Sprintf("%s has ended; no agent has recorded with what, and it runs again", op.Hook))
	}
}

func formatDuration(d time.Duration) string { return d.Round(time.Millisecond).String() }

// docs/monitoring.md says what each metric is.
const (
	hookMetric  = "bijou_hook_seconds"
	unitMetric  = "bijou_unit_state"
	queueMetric = "bijou_unit_queue_length"
)

func (u *uniter) measureHook(r *runningHook, failure string) {
	u.State.Metrics.Observe(r.endedAt.Sub(r.op.Started), hookMetric, "hook", r.op.Hook.Name, "result", metrics.Result(failure == ""))
}

// measureUnit costs nothing unless somebody measures.
func (u *uniter) measureUnit(s decide.Snapshot) {
	if u.State.Metrics == nil {
		return
	}
	u.State.Metrics.Set(float64(s.CountQueued()), queueMetric, "unit", u.Unit)
	now := []string{"unit", u.Unit, "state", cmp.Or(s.Uniter.Workflow.State, state.UnitPending), "workload", cmp.Or(s.Unit.Status.Status, "unknown")}
	if !slices.Equal(now, u.measured) {
		u.State.Metrics.Set(1, unitMetric, now...)
		u.State.Metrics.Remove(unitMetric, u.measured...)
		u.measured = now
	}
}

func (u *uniter) clearMetrics() {
	u.State.Metrics.Remove(queueMetric, "unit", u.Unit)
	u.State.Metrics.Remove(unitMetric, u.measured...)
}
