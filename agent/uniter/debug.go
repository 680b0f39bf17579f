package uniter

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookexec"
	"bijou/state"
)

// debugSession returns nil for a hook that nobody runs by hand.
func debugSession(d *state.Debug, h state.Hook) (session *hookexec.Debug, holder string) {
	if d == nil || hook.IsAction(h) {
		return nil, ""
	}
	wanted, named := d.Wants(h.Name)
	if !wanted {
		return nil, ""
	}
	return &hookexec.Debug{Socket: d.Socket, Always: named}, d.String()
}

// endStaleDebug drops the debug session of an operator who was killed, so that the hook
// runs without it.
func (u *uniter) endStaleDebug(ctx context.Context, f *hookFacts) {
	d := f.debug
	if d == nil {
		return
	}
	ask, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if exec.CommandContext(ask, "tmux", "-S", d.Socket, "has-session", "-t", state.DebugSession).Run() == nil {
		return
	}
	f.debug, f.holder = nil, ""
	u.Log.Info("the debug session is over", "socket", d.Socket)
	if dir := filepath.Dir(d.Socket); strings.HasPrefix(filepath.Base(dir), "bijou-debug-") {
		_ = os.RemoveAll(dir) // which its operator may have done already
	}
	err := u.commitStep(ctx, "debug-end", func(tx *state.Tx) error { return tx.ClearDebug(u.Unit, d.Socket) })
	if err != nil {
		u.Log.Debug("cannot forget the debug session", "error", err)
	}
}
