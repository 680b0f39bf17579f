package uniter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"bijou/agent/hook"
	"bijou/agent/hookexec"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/unitdir"
)

// recoverAtStart kills a hook that still runs although its agent died. It records the hook as failed, and
// the agent as restarted.
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

// recordRestart makes config-changed owed, which charms expect after a restart.
func recordRestart(tx *state.Tx, unit string) error {
	w, err := tx.Workflow(unit)
	if err != nil || w.State == "" {
		return err
	}
	w.ConfigOwed = true
	return tx.PutWorkflow(unit, w)
}

// reapHook kills the hook that was running when the agent died, and records it as failed.
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

// awaitRestoreCheck blocks while records that were restored from a backup differ from the unit's directory,
// unless an operator has accepted the difference.
func (u *uniter) awaitRestoreCheck(ctx context.Context) error {
	for {
		agreed, revision, err := u.checkRestored(ctx)
		if err != nil || agreed {
			return err
		}
		if err := u.watch.Renew(ctx, u.State, revision, []string{"restored"}, state.WatchUnit(u.Unit)); err != nil {
			return err
		}

		u.Loop.MarkUnbounded()
		select {
		case <-u.watch.Events():
		case <-ctx.Done():
			return ctx.Err()
		}

		if _, _, err := u.watch.Take(); err != nil {
			return err
		}
	}
}

// checkRestored holds the unit's directory against the records of a restored environment, and records any
// difference for the operator. agreed is true if the unit may go on: it was not restored, nothing differs,
// or an operator has accepted the difference. revision is the one that was read, for waiting until
// something changes.
func (u *uniter) checkRestored(ctx context.Context) (agreed bool, revision int64, err error) {
	var mark state.Restored
	var known knownRuns
	var storages []state.Storage
	var environment string
	err = u.State.View(ctx, func(v *state.View) error {
		var marked bool
		mark, marked, err = v.Restored(u.Unit)
		if err != nil || !marked {
			agreed = !marked
			return err
		}

		if known, err = readKnownRuns(v, u.Unit); err != nil {
			return err
		}
		if storages, environment, err = readStorages(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil || agreed || mark.Differs != "" {
		return agreed, revision, err
	}

	differs := ""
	if !mark.Adopted {
		if differs, err = known.compareFolder(u.Folder); err != nil {
			return false, 0, err
		}
	}

	missing := u.Folder.MissingStorage(environment, storages)
	if len(missing) > 0 {
		differs = describeMissing(differs, missing)
	}
	if differs != "" {
		u.Log.Warn("the directory differs from the restored records; waiting for an operator",
			"difference", differs)
	}

	err = u.Update(ctx, func(tx *state.Tx) error { return tx.SetRestoredDiffers(u.Unit, differs, missing) })
	return err == nil && (differs == "" || mark.Accepted), revision, err
}

// readStorages returns the unit's storage and, if there is any, the environment's name.
func readStorages(v *state.View, unit string) (all []state.Storage, environment string, err error) {
	all, err = v.UnitStorages(unit)
	if err != nil || len(all) == 0 {
		return nil, "", err
	}
	e, err := v.Environment()
	return all, e.Name, err
}

// describeMissing adds to a difference that directories of storage are missing.
func describeMissing(differs string, missing []string) string {
	text := "the folder of its storage " + strings.Join(missing, ", ") + " is not there"
	if differs == "" {
		return text
	}
	return differs + ", and " + text
}

// knownRuns are the runs of hooks, actions and commands that the records have.
type knownRuns struct {
	charm   string // that is in the folder, by the records
	running string // the run that has begun
	last    string // the run that ended last
	ended   map[string]bool
}

// readKnownRuns returns the charm and the runs of hooks and actions that the unit's records name.
func readKnownRuns(v *state.View, unit string) (k knownRuns, err error) {
	w, err := v.Workflow(unit)
	if err != nil {
		return k, err
	}
	op, _, err := v.Op(unit)
	if err != nil {
		return k, err
	}

	history, err := v.HookRuns(unit)
	if err != nil {
		return k, err
	}
	actions, err := actions.List(v, unit)
	if err != nil {
		return k, err
	}

	k = knownRuns{charm: w.Charm, running: op.ID, ended: map[string]bool{}}
	var at time.Time
	add := func(id string, ended time.Time) {
		k.ended[id] = true
		if !ended.Before(at) {
			k.last = id
			at = ended
		}
	}

	for _, h := range history {
		add(h.ID, h.Ended)
	}
	for _, a := range actions {
		if a.Run != "" {
			add(a.Run, a.Completed)
		}
	}

	return k, nil
}

// compareFolder returns how the unit's directory differs from its records, as after a restore; "" if it does
// not.
func (k knownRuns) compareFolder(f unitdir.Folder) (differs string, err error) {
	if _, err := os.Stat(f.Charm()); k.charm != "" && errors.Is(err, fs.ErrNotExist) {
		return "its directory does not have its charm", nil
	}

	id, err := hookexec.LastRun(f.ProcessPath())
	switch {
	case err != nil:
		return "", err
	case id == k.running && id != "", id == k.last:
		return "", nil
	case id == "":
		return "its directory has no record of any hook", nil
	case k.ended[id]:
		return "its directory is older than its records", nil
	}

	return "its directory has a hook that its records do not have", nil
}
