package uniter

import (
	"fmt"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/agent/hookexec"
	"bijou/state"
)

// beginLine returns the log line for the beginning of a hook.
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

// logOutcome adds the hook to the metrics, and logs its end and the settings that it has changed. The end goes to
// the agent's own log and, if the charm has the hook, to the unit's log. failure is empty if the hook has
// succeeded.
func (u *uniter) logOutcome(r *runningHook, failure string, changes []hookctx.Change) {
	u.measureHook(r, failure)
	defer u.output.Flush()

	name := r.op.Hook.Name
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

// logEnd writes the end of a hook to the unit's log, and how long other processes held the hook's output open
// after that. It writes nothing if no process ran. failure is empty if the hook has succeeded.
func (u *uniter) logEnd(r *runningHook, failure string) {
	if r.outcome.Missing {
		return // the charm has no such hook, so no process ran
	}

	name := r.op.Hook.Name
	if o := r.outcome; o.Held > 0 {
		text := fmt.Sprintf("after the end of the hook, waited %s for a process of the hook that held its output open",
			formatDuration(o.Held))
		if o.Left {
			text = fmt.Sprintf("the hook has left a process behind that holds its output open: waited %s for it; "+
				"its later output is not logged", formatDuration(o.Held))
		}
		u.output.Write("WARNING", name, text)
	}

	duration := formatDuration(r.endedAt.Sub(r.op.Started))
	if failure != "" {
		u.output.Write("ERROR", name, fmt.Sprintf("%s failed after %s: %s", r.op.Hook, duration, failure))
		return
	}
	// Note adds a line that is not urgent, so a hook that prints nothing needs no commit of its own for its log.
	u.output.Note("INFO", name, fmt.Sprintf("%s is done after %s", r.op.Hook, duration))
}

// logUnrecordedEnd logs that a hook has ended without a record of its outcome, and that the hook runs again.
// If no process of the hook was ever recorded, the hook has not begun, and logUnrecordedEnd logs nothing. It also
// logs nothing if the record of the last process cannot be read.
func (u *uniter) logUnrecordedEnd(op state.Op) {
	if id, err := hookexec.LastRun(u.Folder.ProcessPath()); err == nil && id == op.ID {
		u.output.Write("WARNING", op.Hook.Name,
			fmt.Sprintf("%s has ended, but no agent has recorded its outcome, so it runs again", op.Hook))
	}
}

// formatDuration returns a duration for the log, in milliseconds.
func formatDuration(d time.Duration) string { return d.Round(time.Millisecond).String() }
