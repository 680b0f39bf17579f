package state

import (
	"time"

	"bijou/state/keys"
)

// RunningHook is the part of a unit's running hook that status shows.
type RunningHook struct {
	Name     string    `yaml:"name" json:"name"` // the hook's name, or "action 3 (backup)" or "command 4"
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // the operator who runs the hook by hand
}

// Running returns a unit's running hook. It returns nil if no hook is running, or if the unit's agent is not
// present.
func (v *View) Running(unit string) (*RunningHook, error) {
	op, runs, err := v.Op(unit)
	if err != nil {
		return nil, err
	}
	if !runs {
		return nil, nil
	}
	present, err := v.IsPresent(UnitAgent(unit))
	if err != nil {
		return nil, err
	}
	if !present {
		return nil, nil
	}

	r := op.Running()
	return &r, nil
}

// Running returns the part of the operation that status shows.
func (op Op) Running() RunningHook {
	h := op.Hook
	r := RunningHook{Name: h.Name, Remote: h.RemoteUnit, Since: op.Started, Holder: op.Holder}
	if h.Kind == KindAction || h.Kind == KindCommand {
		r.Name = h.String() // also has the number
	}
	if h.Relation != NoRelation {
		r.Relation = Relation{ID: h.Relation}.String()
	}

	return r
}

// HeldBy returns a clause that names the operator who runs the hook by hand, for the end of a sentence. It
// returns "" if the agent runs the hook.
func (r RunningHook) HeldBy() string {
	if r.Holder == "" {
		return ""
	}
	return ", held by " + r.Holder
}

// Interrupts reports whether an operator has interrupted the run op of a hook.
func (u Unit) Interrupts(op Op) bool { return u.Interrupt != "" && u.Interrupt == op.ID }

// Interrupt makes the unit's agent terminate the running hook. The hook then counts as failed, and is not
// retried automatically. Interrupt returns the operation that runs the hook. It returns ErrNotFound if there
// is no such unit, or no hook is running.
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
		return Op{}, refuse(ErrNotFound, "unit %q is not running anything", unit)
	}

	u.Interrupt = op.ID
	return op, tx.keys.Put(keys.Unit(unit), u)
}
