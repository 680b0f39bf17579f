package actions

import (
	"cmp"
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Debug is an operator's session in which a unit's hooks are run by hand. It is on
// the unit's machine.
type Debug struct {
	Socket string   `json:"socket"`          // of its tmux, a path
	Hooks  []string `json:"hooks,omitempty"` // their names; empty: all that the charm has
	By     string   `json:"by,omitempty"`    // whose it is, USER@HOST
	Owner  *int     `json:"owner,omitempty"` // the user id that the socket's folder has; nil: nobody noted it
}

// DebugSession is the name of its tmux session; its socket tells one from another.
const DebugSession = "debug"

// String names its operator, and the command that attaches to it.
func (d Debug) String() string {
	return fmt.Sprintf("%s (debug-hooks; tmux -S %s attach -t %s)",
		cmp.Or(d.By, "an operator"), d.Socket, DebugSession)
}

// Wants reports whether the operator runs that hook by hand, and whether the operator has named it.
func (d Debug) Wants(hook string) (wanted, named bool) {
	named = slices.Contains(d.Hooks, hook)
	return named || len(d.Hooks) == 0, named
}

// ReadDebug reads a unit's debug session; ok is false if there is none.
func ReadDebug(v *state.View, unit string) (d Debug, ok bool, err error) {
	return keyspace.Load[Debug](v.Keys(), keys.Debug(unit))
}

// SetDebug records a unit's debug session. state.ErrNotFound.
func SetDebug(tx *state.Tx, unit string, d Debug) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	return tx.Keys().Put(keys.Debug(unit), d)
}

// ClearDebug removes a unit's debug session, if it is that one.
func ClearDebug(tx *state.Tx, unit, socket string) error {
	d, ok, err := ReadDebug(tx.View, unit)
	if err != nil || !ok || d.Socket != socket {
		return err
	}
	tx.Keys().Remove(keys.Debug(unit))
	return nil
}
