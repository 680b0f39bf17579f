package uniter

import (
	"fmt"
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// beginning is what the unit's log says of a hook that begins.
func beginning(op state.Op) string {
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

// logEnd says in the unit's log how a hook has ended; failure is empty if it is done. A
// hook that the charm does not have has not begun.
func (u *uniter) logEnd(f *flight, failure string) {
	if f.result.Missing {
		return
	}
	name := f.op.Hook.Name
	if r := f.result; r.Held > 0 {
		text := fmt.Sprintf("waited %s longer than the hook for a process of it that held its output open", seconds(r.Held))
		if r.Left {
			text = fmt.Sprintf("the hook has left a process behind that holds its output open: waited %s for it; "+
				"what it prints from now on is in no log", seconds(r.Held))
		}
		u.output.Write("WARNING", name, text)
	}
	took := seconds(f.end.Sub(f.op.Started))
	if failure != "" {
		u.output.Write("ERROR", name, fmt.Sprintf("%s failed after %s: %s", f.op.Hook, took, failure))
		return
	}
	u.output.Note("INFO", name, fmt.Sprintf("%s is done after %s", f.op.Hook, took))
}

// seconds is a time as people read it.
func seconds(d time.Duration) string { return d.Round(time.Millisecond).String() }
