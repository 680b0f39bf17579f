package state

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// RunningHook is a unit's running hook in Status.
type RunningHook struct {
	Name     string    `yaml:"name" json:"name"` // the hook's, "action 3 (backup)", or "command 4"
	Relation string    `yaml:"relation,omitempty" json:"relation,omitempty"`
	Remote   string    `yaml:"remote-unit,omitempty" json:"remote-unit,omitempty"`
	Since    time.Time `yaml:"since" json:"since"`
	Holder   string    `yaml:"held-by,omitempty" json:"held-by,omitempty"` // who runs it by hand
}

// Running reads a unit's running hook; nil: there is none, or its agent is gone.
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

// Running returns what Status shows of the operation.
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

// HeldBy is a clause about the operator who runs it by hand; empty if there is none.
func (r RunningHook) HeldBy() string {
	if r.Holder == "" {
		return ""
	}
	return ", held by " + r.Holder
}

// Interrupts reports whether an operator has asked for the end of that run.
func (u Unit) Interrupts(op Op) bool { return u.Interrupt != "" && u.Interrupt == op.ID }

// Interrupt asks for the end of the unit's running hook: its agent terminates it, so
// that it has failed, and does not retry it by itself. ErrNotFound: there is no such
// unit, or no hook runs.
func (tx *Tx) Interrupt(unit string) (Op, error) {
	u, err := tx.Unit(unit)
	if err != nil {
		return Op{}, err
	}
	op, ok, err := tx.Op(unit)
	if err == nil && !ok {
		err = refuse(ErrNotFound, "unit %q runs nothing", unit)
	}
	if err != nil {
		return Op{}, err
	}
	u.Interrupt = op.ID
	return op, tx.keys.Put(keys.Unit(unit), u)
}

// Debug is an operator's session in which a unit's hooks are run by hand. It is on
// the unit's machine.
type Debug struct {
	Socket string   `json:"socket"`          // of its tmux, a path
	Hooks  []string `json:"hooks,omitempty"` // their names; empty: all that the charm has
	By     string   `json:"by,omitempty"`    // whose it is, USER@HOST
}

// DebugSession is the name of its tmux session; its socket tells one from another.
const DebugSession = "debug"

// String names its operator, and the command that attaches to it.
func (d Debug) String() string {
	return fmt.Sprintf("%s (debug-hooks; tmux -S %s attach -t %s)", cmp.Or(d.By, "an operator"), d.Socket, DebugSession)
}

// Wants reports whether that hook is to be run by hand, and whether it was asked for by
// name.
func (d Debug) Wants(hook string) (wanted, named bool) {
	named = slices.Contains(d.Hooks, hook)
	return named || len(d.Hooks) == 0, named
}

// Debug reads a unit's debug session; ok is false if there is none.
func (v *View) Debug(unit string) (d Debug, ok bool, err error) {
	return keyspace.Load[Debug](v.keys, keys.Debug(unit))
}

// SetDebug records a unit's debug session. ErrNotFound.
func (tx *Tx) SetDebug(unit string, d Debug) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	return tx.keys.Put(keys.Debug(unit), d)
}

// ClearDebug removes a unit's debug session, if it is that one.
func (tx *Tx) ClearDebug(unit, socket string) error {
	d, ok, err := tx.Debug(unit)
	if err != nil || !ok || d.Socket != socket {
		return err
	}
	tx.keys.Remove(keys.Debug(unit))
	return nil
}
