package uniter

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bijou/agent/hookexec"
	"bijou/state"
)

// debugged is the session in which an operator runs the hook by hand; nil if none
// does.
func debugged(v *state.View, unit string, h state.Hook) (*hookexec.Debug, error) {
	d, ok, err := v.Debug(unit)
	if err != nil || !ok {
		return nil, err
	}
	wanted, named := d.Wants(h.Name)
	if !wanted {
		return nil, nil
	}
	return &hookexec.Debug{Socket: d.Socket, Always: named}, nil
}

// debugging drops a debug session that is over, of an operator who was killed.
func (u *uniter) debugging(ctx context.Context, d *hookexec.Debug) *hookexec.Debug {
	if d == nil {
		return nil
	}
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if exec.CommandContext(ask, "tmux", "-S", d.Socket, "has-session", "-t", "debug").Run() == nil {
		return d
	}
	u.Log.Info("the debug session is over", "socket", d.Socket)
	if dir := filepath.Dir(d.Socket); strings.HasPrefix(filepath.Base(dir), "bijou-debug-") {
		_ = os.RemoveAll(dir) // which its operator may have done already
	}
	err := u.record(ctx, "debug-end", func(tx *state.Tx) error { return tx.ClearDebug(u.Unit, d.Socket) })
	if err != nil {
		u.Log.Debug("cannot forget the debug session", "error", err)
	}
	return nil
}
