package state

import (
	"fmt"
	"time"
)

// longRun is how long a hook may run before the status says so in its message.
const longRun = 10 * time.Minute

// RunningView is what a unit runs, in Status.
type RunningView struct {
	Kind     string    `yaml:"kind" json:"kind"` // hook, action or command
	Name     string    `yaml:"name,omitempty" json:"name,omitempty"`
	ID       string    `yaml:"id,omitempty" json:"id,omitempty"` // of an action or command
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // who runs it by hand
}

// Running reads what a unit runs; nil: nothing, or its agent is gone.
func (v *View) Running(unit string) (*RunningView, error) {
	present, err := v.Present(UnitAgent(unit))
	if err != nil || !present {
		return nil, err
	}
	op, runs, err := v.Op(unit)
	if err != nil || !runs {
		return nil, err
	}
	r := op.View()
	return &r, nil
}

// View returns what is shown of what is in flight.
func (op Op) View() RunningView {
	h := op.Hook
	r := RunningView{Kind: "hook", Name: h.Name, Remote: h.RemoteUnit, Since: op.Started, Holder: op.Holder}
	if h.Relation != NoRelation {
		r.Relation = Relation{ID: h.Relation}.String()
	}
	if h.Kind == KindAction || h.Kind == KindCommand {
		r.Kind, r.ID = h.Kind, fmt.Sprint(h.Action)
	}
	if h.Kind == KindCommand {
		r.Name = ""
	}
	return r
}

// String names it as tables do: the hook's name, "action 3 (backup)", "command 4".
func (r RunningView) String() string {
	switch r.Kind {
	case KindAction:
		return fmt.Sprintf("action %s (%s)", r.ID, r.Name)
	case KindCommand:
		return "command " + r.ID
	}
	return r.Name
}

// slow says that what runs does so for very long; empty if it does not.
func (r RunningView) slow(now time.Time) string {
	took := now.Sub(r.Since)
	if took < longRun {
		return ""
	}
	text := fmt.Sprintf("%s has been running for %s", r, took.Truncate(time.Minute))
	if r.Holder != "" {
		text += ", held by " + r.Holder
	}
	return text
}
