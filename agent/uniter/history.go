package uniter

import (
	"fmt"

	"bijou/agent/hook"
	"bijou/agent/hookctx"
	"bijou/state"
)

// past is how a hook has ended, for the unit's history.
type past struct {
	state.HookRun
	unlisted bool   // the charm has no such hook, or it is none
	stderr   string // the last line that it has written there
}

// pastOf is the past of a hook whose process nobody has seen end.
func pastOf(op state.Op, failure string) past {
	r := state.HookRun{ID: op.ID, Hook: op.Hook.Name, Remote: hook.Member(op.Hook), Started: op.Started, Ended: now(), Exit: -1, Failure: failure}
	if op.Hook.Relation != state.NoRelation {
		r.Relation = state.Relation{ID: op.Hook.Relation}.String()
	}
	return past{HookRun: r, unlisted: hook.IsAsked(op.Hook)}
}

// past is that of the hook in flight, whose process has ended.
func (f *flight) past(failure string) past {
	p := pastOf(f.op, failure)
	p.stderr = f.stderr
	p.Ended, p.unlisted = f.end.UTC(), f.result.Missing || hook.IsAsked(f.op.Hook)
	if f.result.Failure == "" || f.result.Code != 0 {
		p.Exit = f.result.Code
	}
	return p
}

// with adds the settings that the hook has written.
func (p past) with(changes []hookctx.Change) past {
	for _, c := range changes {
		of := c.Node.Unit
		if c.Node.Service != "" {
			of = c.Node.Service
		}
		p.Changes = append(p.Changes, fmt.Sprintf("%s of %s: %s", state.Relation{ID: c.Node.Relation}, of, c))
	}
	return p
}

// remember adds to the unit's history.
func (u *uniter) remember(tx *state.Tx, p past) error {
	if p.unlisted {
		return nil
	}
	p.Seq = u.runs
	return tx.AddHookRun(u.Unit, p.HookRun)
}

// nextRun is where the unit's history goes on.
func nextRun(v *state.View, unit string) (int64, error) {
	runs, err := v.HookRuns(unit)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	return runs[len(runs)-1].Seq + 1, nil
}

// ran counts the hook in flight, whose end is recorded.
func (u *uniter) ran() {
	if !u.hook.past("").unlisted {
		u.runs++
	}
}
