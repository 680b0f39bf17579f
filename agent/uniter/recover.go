package uniter

import (
	"context"
	"errors"
	"fmt"

	"bijou/agent/hook"
	"bijou/agent/hookexec"
	"bijou/state"
)

// recoverAtStart kills a hook that still runs although its agent died, and records that
// it has failed, and that the agent has restarted.
func (u *uniter) recoverAtStart(ctx context.Context) error {
	var op state.Op
	var inFlight bool
	err := u.State.View(ctx, func(v *state.View) (err error) {
		if op, inFlight, err = v.Op(u.Unit); err != nil {
			return err
		}
		u.nextSeq, err = readNextSeq(v, u.Unit)
		return err
	})
	if err != nil {
		return err
	}
	if inFlight {
		if err := u.reapHook(ctx, op); err != nil {
			return err
		}
	}
	err = u.commitStep(ctx, "recover", func(tx *state.Tx) error { return recordRestart(tx, u.Unit) })
	return state.IgnoreNotFound(err) // the first step will find that the unit is gone
}

// recordRestart has config-changed owed, as charms expect it after a restart.
func recordRestart(tx *state.Tx, unit string) error {
	w, err := tx.Workflow(unit)
	if err != nil || w.State == "" {
		return err
	}
	w.ConfigOwed = true
	return tx.PutWorkflow(unit, w)
}

func (u *uniter) reapHook(ctx context.Context, op state.Op) error {
	killed, err := hookexec.Reap(u.Folder.ProcessPath(), op.ID)
	if err != nil || !killed {
		return err
	}
	why := "the hook was running when its agent died"
	if hook.IsAction(op.Hook) {
		why = whyKilled
	}
	if err := u.commitFailure(ctx, op, newRunRecord(op, why)); err != nil && !errors.Is(err, errRecorded) {
		return err
	}
	u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, why))
	u.Log.Warn("killed a hook of an agent that died", "hook", op.Hook.Name)
	return nil
}

func (u *uniter) failCrashed(ctx context.Context, op state.Op) error {
	err := u.commitFailure(ctx, op, newRunRecord(op, whyUnknown))
	if errors.Is(err, errRecorded) {
		return nil
	}
	u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, whyUnknown))
	return err
}
