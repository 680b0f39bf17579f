package state

import (
	"fmt"
	"time"
)

// slowHookThreshold is how long a hook may run before the status mentions it.
const slowHookThreshold = 10 * time.Minute

// RunningView is a unit's running hook in Status.
type RunningView struct {
	Name     string    `yaml:"name" json:"name"` // the hook's, "action 3 (backup)", or "command 4"
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // who runs it by hand
}

// Running reads a unit's running hook; nil: there is none, or its agent is gone.
func (v *View) Running(unit string) (*RunningView, error) {
	op, runs, err := v.Op(unit)
	if err == nil && runs {
		runs, err = v.IsPresent(UnitAgent(unit))
	}
	if err != nil || !runs {
		return nil, err
	}
	r := op.View()
	return &r, nil
}

// View returns what Status shows of the operation.
func (op Op) View() RunningView {
	h := op.Hook
	r := RunningView{Name: h.Name, Remote: h.RemoteUnit, Since: op.Started, Holder: op.Holder}
	if h.Kind == KindAction || h.Kind == KindCommand {
		r.Name = h.String()
	}
	if h.Relation != NoRelation {
		r.Relation = Relation{ID: h.Relation}.String()
	}
	return r
}

// HeldBy is a clause about the operator who runs it by hand; empty if there is none.
func (r RunningView) HeldBy() string {
	if r.Holder == "" {
		return ""
	}
	return ", held by " + r.Holder
}

// slowMessage is empty for what has not run for very long.
func (r RunningView) slowMessage(now time.Time) string {
	took := now.Sub(r.Since)
	if took < slowHookThreshold {
		return ""
	}
	return fmt.Sprintf("%s has been running for %s%s", r.Name, took.Truncate(time.Minute), r.HeldBy())
}
