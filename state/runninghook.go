package state

import (
	"time"

	"bijou/state/keys"
)

// RunningHook is a unit's running hook in Status.
type RunningHook struct {
	Name     string    `yaml:"name" json:"name"` // the hook's, "action 3 (backup)", or "command 4"
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // who runs it by hand
}

// Running returns a unit's running hook. It returns nil if none runs, or if the unit's agent is not
// present.
func (v *View) Running(unit string) (*RunningHook, error) {
	op, runs, err := v.Op(unit)
	if err == nil && runs {
		runs, err = v.IsPresent(UnitAgent(unit))
	}
	if err != nil || !runs {
		return nil, err
	}

	r := op.Running()
	return &r, nil
}

// Running returns the part of the operation that status shows.
func (op Op) Running() RunningHook {
	h := op.Hook
	r := RunningHook{Name: h.Name, Remote: h.RemoteUnit, Since: op.Started, Holder: op.Holder}
	if h.Kind == KindAction || h.Kind == KindCommand {
		r.Name = h.String()
	}
	if h.Relation != NoRelation {
		r.Relation = Relation{ID: h.Relation}.String()
	}

	return r
}

// HeldBy returns a clause about the operator who runs the hook by hand; empty if there is none.
func (r RunningHook) HeldBy() string {
	if r.Holder == "" {
		return ""
	}
	return ", held by " + r.Holder
}

// Interrupts reports whether an operator has asked for the end of that run.
func (u Unit) Interrupts(op Op) bool { return u.Interrupt != "" && u.Interrupt == op.ID }

// Interrupt asks for the end of the unit's running hook: its agent terminates it, so that it has
// failed, and does not retry it by itself. ErrNotFound: there is no such unit, or no hook runs.
func (tx *Tx) Interrupt(unit string) (Op, error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return Op{}, err
	}

	op, ok, err := tx.Op(unit)
	if err != nil {
		return Op{}, err
	}
	if !ok {
		return Op{}, refuse(ErrNotFound, "unit %q runs nothing", unit)
	}

	u.Interrupt = op.ID
	return op, tx.keys.Put(keys.Unit(unit), u)
}
