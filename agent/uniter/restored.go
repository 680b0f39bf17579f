package uniter

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"bijou/agent/hookexec"
	"bijou/state"
)

// awaitAgreement returns once the unit may go on from records that come from a backup:
// its folder is as they say, or an operator has looked at it.
func (u *uniter) awaitAgreement(ctx context.Context) error {
	for {
		agreed, revision, err := u.compareRestored(ctx)
		if err != nil || agreed {
			return err
		}
		if err := u.watch.Renew(ctx, u.State, revision, []string{"restored"}, state.WatchUnit(u.Unit)); err != nil {
			return err
		}
		u.Loop.Rest()
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

// compareRestored looks for the mark of a unit that was restored, and if nobody has done
// so yet compares the folder.
func (u *uniter) compareRestored(ctx context.Context) (agreed bool, revision int64, err error) {
	var mark state.Restored
	var known runs
	err = u.State.View(ctx, func(v *state.View) error {
		var marked bool
		if mark, marked, err = v.Restored(u.Unit); err != nil || !marked {
			agreed = !marked
			return err
		}
		if known, err = readRuns(v, u.Unit); err != nil {
			return err
		}
		revision, err = v.Revision()
		return err
	})
	if err != nil || agreed || mark.Differs != "" {
		return agreed, revision, err
	}
	differs, err := known.compare(u.Folder)
	if err != nil {
		return false, 0, err
	}
	if differs != "" {
		u.Log.Warn("the folder is not as the restored records say; waiting for an operator", "difference", differs)
	}
	err = u.Update(ctx, func(tx *state.Tx) error { return tx.SetRestoredDiffers(u.Unit, differs) })
	return err == nil && differs == "", revision, err
}

// runs are which processes of hooks, actions and commands the records know.
type runs struct {
	charm    string // that is in the folder, as they say
	inFlight string // the run that has begun
	last     string // the one that ended last
	ended    map[string]bool
}

// readRuns reads them.
func readRuns(v *state.View, unit string) (r runs, err error) {
	w, err := v.Workflow(unit)
	if err != nil {
		return r, err
	}
	op, _, err := v.Op(unit)
	if err != nil {
		return r, err
	}
	history, err := v.HookRuns(unit)
	if err != nil {
		return r, err
	}
	actions, err := v.Actions(unit)
	if err != nil {
		return r, err
	}
	r = runs{charm: w.Charm, inFlight: op.ID, ended: map[string]bool{}}
	var at time.Time
	add := func(id string, ended time.Time) {
		if r.ended[id] = true; !ended.Before(at) {
			r.last, at = id, ended
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
	return r, nil
}

// compare holds the folder against what the records know; how they differ is for people.
func (r runs) compare(f Folder) (differs string, err error) {
	if _, err := os.Stat(f.Charm()); r.charm != "" && errors.Is(err, fs.ErrNotExist) {
		return "its charm is not in its folder", nil
	}
	id, err := hookexec.LastRun(f.record())
	switch {
	case err != nil:
		return "", err
	case id == r.inFlight && id != "", id == r.last:
		return "", nil
	case id == "":
		return "its folder knows of no hook that has run", nil
	case r.ended[id]:
		return "its folder is older than its records", nil
	}
	return "a hook has run in its folder that its records do not know", nil
}
