package uniter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"bijou/agent/hookexec"
	"bijou/agent/unitfolder"
	"bijou/state"
)

// awaitRestoreCheck returns once the unit may go on from records that come from a backup:
// its folder agrees with them, or an operator has looked at it.
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

func (u *uniter) checkRestored(ctx context.Context) (agreed bool, revision int64, err error) {
	var mark state.Restored
	var known knownRuns
	err = u.State.View(ctx, func(v *state.View) error {
		var marked bool
		if mark, marked, err = v.Restored(u.Unit); err != nil || !marked {
			agreed = !marked
			return err
		}
		if known, err = readKnownRuns(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil || agreed || mark.Differs != "" {
		return agreed, revision, err
	}
	differs, err := known.compareFolder(u.Folder)
	if err != nil {
		return false, 0, err
	}
	if differs != "" {
		u.Log.Warn("the folder is not as the restored records say; waiting for an operator", "difference", differs)
	}
	err = u.Update(ctx, func(tx *state.Tx) error { return tx.SetRestoredDiffers(u.Unit, differs) })
	return err == nil && differs == "", revision, err
}

// knownRuns are the runs of hooks, actions and commands that the records have.
type knownRuns struct {
	charm   string // that is in the folder, by the records
	running string // the run that has begun
	last    string // the run that ended last
	ended   map[string]bool
}

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
	actions, err := v.Actions(unit)
	if err != nil {
		return k, err
	}
	k = knownRuns{charm: w.Charm, running: op.ID, ended: map[string]bool{}}
	var at time.Time
	add := func(id string, ended time.Time) {
		if k.ended[id] = true; !ended.Before(at) {
			k.last, at = id, ended
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

func (k knownRuns) compareFolder(f unitfolder.Folder) (differs string, err error) {
	if _, err := os.Stat(f.Charm()); k.charm != "" && errors.Is(err, fs.ErrNotExist) {
		return "its charm is not in its folder", nil
	}
	id, err := hookexec.LastRun(f.ProcessPath())
	switch {
	case err != nil:
		return "", err
	case id == k.running && id != "", id == k.last:
		return "", nil
	case id == "":
		return "its folder knows of no hook that has run", nil
	case k.ended[id]:
		return "its folder is older than its records", nil
	}
	return "a hook has run in its folder that its records do not know", nil
}
