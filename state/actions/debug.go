package actions

import (
	"cmp"
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Debug is an operator's tmux session on the unit's machine, in which the unit's hooks run by hand.
type Debug struct {
	Socket string   `json:"socket"`          // the path of the tmux socket
	Hooks  []string `json:"hooks,omitempty"` // the names of the hooks; empty for all hooks of the charm
	By     string   `json:"by,omitempty"`    // the operator, USER@HOST
	Owner  *int     `json:"owner,omitempty"` // the user id of the socket directory's owner; nil if the owner is unknown
}

// DebugSession is the name of the tmux session of every Debug. Each Debug has its own socket.
const DebugSession = "debug"

// String returns the operator and the command that attaches to the session.
func (d Debug) String() string {
	return fmt.Sprintf("%s (debug-hooks; tmux -S %s attach -t %s)",
		cmp.Or(d.By, "an operator"), d.Socket, DebugSession)
}

// Wants reports whether the operator runs the hook by hand (wanted), and whether the operator has named this
// hook (named).
func (d Debug) Wants(hook string) (wanted, named bool) {
	named = slices.Contains(d.Hooks, hook)
	wantsAll := len(d.Hooks) == 0
	return named || wantsAll, named
}

// ReadDebug reads a unit's debug session; ok is false if there is none.
func ReadDebug(v *state.View, unit string) (d Debug, ok bool, err error) {
	return keyspace.Load[Debug](v.Keys(), keys.Debug(unit))
}

// SetDebug records a unit's debug session. It returns [state.ErrNotFound] if there is no such unit.
func SetDebug(tx *state.Tx, unit string, d Debug) error {
	if _, err := tx.Unit(unit); err != nil {
		return err
	}
	return tx.Keys().Put(keys.Debug(unit), d)
}

// ClearDebug removes the record of a unit's debug session if the session has the given socket. Otherwise it
// does nothing.
func ClearDebug(tx *state.Tx, unit, socket string) error {
	d, ok, err := ReadDebug(tx.View, unit)
	if err != nil {
		return err
	}
	if !ok || d.Socket != socket {
		return nil
	}
	tx.Keys().Remove(keys.Debug(unit))
	return nil
}
