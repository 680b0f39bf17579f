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

// recoverAtStart kills a hook that is still running after its agent died, and records it as failed. It also
// records that the agent has restarted, and reads the number of the unit's next run. For a dead unit it records
// nothing.
func (u *uniter) recoverAtStart(ctx context.Context) error {
	var op state.Op
	var inFlight, dead bool
	err := u.State.View(ctx, func(v *state.View) (err error) {
		if op, inFlight, err = v.Op(u.Unit); err != nil {
			return err
		}
		if dead, err = isDead(v, u.Unit); err != nil {
			return err
		}
		u.nextSeq, err = readNextSeq(v, u.Unit)
		return err
	})
	if err != nil {
		return err
	}

	if dead {
		if !inFlight {
			return nil
		}
		// Kill the hook if it is still running. The unit's records are about to be removed, so nothing is
		// recorded.
		_, err := hookexec.Reap(u.Folder.ProcessPath(), op.ID)
		return err
	}

	if inFlight {
		if err := u.reapHook(ctx, op); err != nil {
			return err
		}
	}

	err = u.commitStep(ctx, "recover", func(tx *state.Tx) error { return recordRestart(tx, u.Unit) })
	return state.IgnoreNotFound(err) // if the unit is gone, the first step will notice that
}

// isDead reports whether a unit is dead or already removed. Nothing more can be recorded for such a unit.
func isDead(v *state.View, unit string) (bool, error) {
	u, err := v.Unit(unit)
	if errors.Is(err, state.ErrNotFound) {
		return true, nil
	}
	return u.Life == state.Dead, err
}

// recordRestart records that config-changed must run, since charms expect this hook after a restart of the
// agent. It records nothing for a unit that has not run its install hook.
func recordRestart(tx *state.Tx, unit string) error {
	w, err := tx.Workflow(unit)
	if err != nil {
		return err
	}
	if w.State == "" {
		return nil
	}

	w.ConfigOwed = true
	return tx.PutWorkflow(unit, w)
}

// reapHook kills the hook of operation op if it is still running although its agent died, and records the
// hook as failed. It does nothing if the hook is not running: the unit's next step then handles op.
func (u *uniter) reapHook(ctx context.Context, op state.Op) error {
	killed, err := hookexec.Reap(u.Folder.ProcessPath(), op.ID)
	if err != nil {
		return err
	}
	if !killed {
		return nil
	}

	why := "the hook was running when its agent died"
	if hook.IsAction(op.Hook) {
		why = whyKilled
	}
	err = u.commitFailure(ctx, op, newRunRecord(op, why))
	if err != nil && !errors.Is(err, errRecorded) { // errRecorded: an earlier attempt has committed the failure
		return err
	}

	u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, why))
	u.Log.Warn("killed a hook of an agent that died", "hook", op.Hook.Name)
	return nil
}

// failCrashed records that an action, command or hook has failed, because its agent died and its outcome is
// unknown. It also logs the failure, unless the outcome was already recorded.
func (u *uniter) failCrashed(ctx context.Context, op state.Op) error {
	err := u.commitFailure(ctx, op, newRunRecord(op, whyUnknown))
	if errors.Is(err, errRecorded) {
		return nil
	}
	if err != nil {
		return err
	}

	u.output.Write("ERROR", op.Hook.Name, fmt.Sprintf("%s failed: %s", op.Hook, whyUnknown))
	return nil
}

// awaitRestoreCheck blocks while records that were restored from a backup differ from the unit's directory,
// unless an operator has accepted the difference.
func (u *uniter) awaitRestoreCheck(ctx context.Context) error {
	for {
		agreed, revision, err := u.checkRestored(ctx)
		if err != nil {
			return err
		}
		if agreed {
			return nil
		}

		// renewWatch names its watches by ids, so it later replaces a watch with this name.
		about := []string{"restored"}
		if err := u.watch.Renew(ctx, u.State, revision, about, state.WatchUnit(u.Unit)); err != nil {
			return err
		}

		u.Loop.MarkUnbounded() // the operator's answer can take any time
		select {
		case <-u.watch.Events():
		case <-ctx.Done():
			return ctx.Err()
		}

		// The next check reads everything again, so only an error of the watch matters here.
		if _, _, err := u.watch.Take(); err != nil {
			return err
		}
	}
}

// checkRestored compares the unit's directory with the records of a restored environment, and records any
// difference for the operator. agreed is true if the unit can continue: its records were not restored,
// nothing differs, or an operator has accepted the difference. Otherwise the caller must watch for changes
// after revision.
func (u *uniter) checkRestored(ctx context.Context) (agreed bool, revision int64, err error) {
	r, err := state.Read(ctx, u.State, func(v *state.View) (restoredUnit, error) {
		return readRestoredUnit(v, u.Unit)
	})
	if err != nil {
		return false, 0, err
	}
	if !r.marked {
		return true, 0, nil
	}
	if r.mark.Differs != "" {
		return false, r.revision, nil // the operator has not answered: the answer removes the mark
	}

	// The agent trusts the directory of an adopted unit, and checks only its storage.
	differs := ""
	if !r.mark.Adopted {
		if differs, err = r.known.compareFolder(u.Folder); err != nil {
			return false, 0, err
		}
	}

	missing := u.Folder.MissingStorage(r.environment, r.storages)
	if len(missing) > 0 {
		differs = describeMissing(differs, missing)
	}
	if differs != "" {
		u.Log.Warn("the directory differs from the restored records; waiting for an operator",
			"difference", differs)
	}

	// Without a difference, or if the operator has already accepted any difference, this removes the mark.
	err = u.Update(ctx, func(tx *state.Tx) error { return tx.SetRestoredDiffers(u.Unit, differs, missing) })
	if err != nil {
		return false, 0, err
	}
	return differs == "" || r.mark.Accepted, r.revision, nil
}

// restoredUnit holds the records with which the directory of a restored unit must agree.
type restoredUnit struct {
	// marked is true if the unit has the mark of records that come from a backup. If it is false, all other
	// fields are zero.
	marked      bool
	mark        state.Restored
	known       knownRuns
	storages    []state.Storage
	environment string // the environment's name, if there are storages
	revision    int64  // the revision at which the records were read
}

// readRestoredUnit reads the records for checkRestored.
func readRestoredUnit(v *state.View, unit string) (r restoredUnit, err error) {
	r.mark, r.marked, err = v.Restored(unit)
	if err != nil {
		return r, err
	}
	if !r.marked {
		return r, nil // nothing must agree with the directory
	}

	if r.known, err = readKnownRuns(v, unit); err != nil {
		return r, err
	}
	if r.storages, r.environment, err = readStorages(v, unit); err != nil {
		return r, err
	}
	r.revision, err = v.Revision()
	return r, err
}

// readStorages returns the unit's storage and, if there is any, the environment's name.
func readStorages(v *state.View, unit string) (all []state.Storage, environment string, err error) {
	all, err = v.OwnStorages(unit)
	if err != nil {
		return nil, "", err
	}
	if len(all) == 0 {
		return nil, "", nil
	}

	env, err := v.Environment()
	return all, env.Name, err
}

// describeMissing adds to the description of a difference, which can be empty, that the directories of storage are
// missing. missing contains the ids of that storage.
func describeMissing(difference string, missing []string) string {
	text := "the directory of its storage " + strings.Join(missing, ", ") + " is not there"
	if difference == "" {
		return text
	}
	return difference + ", and " + text
}

// knownRuns holds the ids of all runs of hooks, actions and commands in a unit's records, and the unit's charm.
type knownRuns struct {
	charm   string          // the URL of the charm that the unit's directory must contain, or empty
	running string          // the run in flight, or empty
	last    string          // the run that ended last, or empty
	lastEnd time.Time       // when last ended
	ended   map[string]bool // all runs that have ended
}

// readKnownRuns reads the unit's charm and runs from its records.
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
	unitActions, err := actions.List(v, unit)
	if err != nil {
		return k, err
	}

	k = knownRuns{charm: w.Charm, running: op.ID, ended: map[string]bool{}}
	for _, h := range history {
		k.addEnded(h.ID, h.Ended)
	}
	for _, a := range unitActions {
		if a.Run != "" { // also an action in flight, which compareFolder recognizes before the ended runs
			k.addEnded(a.Run, a.Completed)
		}
	}

	return k, nil
}

// addEnded adds a run that has ended at the given time, or an action in flight with a zero time. It also sets last
// and lastEnd, unless a run that was added before has ended later.
func (k *knownRuns) addEnded(id string, end time.Time) {
	k.ended[id] = true
	if !end.Before(k.lastEnd) {
		k.last = id
		k.lastEnd = end
	}
}

// compareFolder checks that the unit's directory contains the charm, if k names one. It also checks that the
// directory's last run is the run in flight, or the run that ended last in the records. It returns a
// description of the difference, or an empty string if there is none.
func (k knownRuns) compareFolder(f unitdir.Folder) (differs string, err error) {
	if k.charm != "" {
		if _, err := os.Stat(f.Charm()); errors.Is(err, fs.ErrNotExist) {
			return "its directory does not contain its charm", nil
		}
	}

	// The directory records the run that began last.
	id, err := hookexec.LastRun(f.ProcessPath())
	if err != nil {
		return "", err
	}

	isInFlight := id != "" && id == k.running
	switch {
	case isInFlight || id == k.last: // without any run, both id and k.last are empty
		return "", nil
	case id == "":
		return "its directory has no record of any hook", nil
	case k.ended[id]:
		return "its directory is older than its records", nil
	}

	return "its directory has a hook that is not in its records", nil
}
