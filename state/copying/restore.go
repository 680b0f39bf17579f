package copying

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/backupfile"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
	"bijou/state/store/sqlite"
	"bijou/state/storeurl"
)

// Restoration describes how a backup is restored. Without Replace it becomes another
// environment: the old one's instances, and what ran on its machines, are left behind.
// With Replace it is the same one, in place of whatever the store may still hold of it:
// no agent that has begun before goes on.
type Restoration struct {
	URL     string
	Replace bool
	// Adopt takes units' folders for what the backup says, without comparing. That of a
	// storage must be there all the same.
	Adopt bool
	// Storage has the ids of the storages whose content was put back; all others of another
	// environment begin again, empty.
	Storage []string
	// SetAside, unless it is nil, is called with the folder to which Replace has moved a store that was
	// replaced while it was open.
	SetAside func(folder string)
	// Begun, unless it is nil, is called once the store is no longer what it was.
	Begun func()
	// Change completes the environment's record.
	Change func(*state.Environment)
	// Progress is told of each key and chunk that is copied, and then compared.
	Progress keyspace.Progress
	// Fault, unless it is nil, is called at named points, for tests to end the
	// process there: restore-begun, migrate-batch, restore-copied, restore-founded.
	Fault func(point string)
}

// Restore makes an environment of a backup. The environment cannot be opened until all of it is there, was
// read back and compared. After an interruption call Restore again. It returns ErrStoreExists if the store
// holds anything else, and ErrRunning if another migration or restoration works there.
func Restore(ctx context.Context, r Restoration, a *backupfile.Reader) (c CopySummary, err error) {
	from, err := checkBackup(a)
	if err != nil {
		return c, err
	}

	if r.Replace {
		if err := r.setAsideReplaced(); err != nil {
			return c, err
		}
	}

	to, err := storeurl.Create(ctx, r.URL)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	return r.restoreTo(ctx, from, to)
}

// setAsideReplaced moves a replaced store's files out of the way.
func (r Restoration) setAsideReplaced() error {
	folder, err := storeurl.SetAsideReplaced(r.URL)
	var held *sqlite.Held
	if errors.As(err, &held) {
		return fmt.Errorf("%w: %w", held, state.ErrRunning)
	}
	if err != nil {
		return err
	}

	if folder != "" && r.SetAside != nil {
		r.SetAside(folder)
	}
	return nil
}

// restoreTo restores the backup to a store that is open. With Replace it first ends all agents of the
// environment there.
func (r Restoration) restoreTo(ctx context.Context, from *backupSource, to store.Store) (c CopySummary, err error) {
	busy := occupantPrefixes()
	if r.Replace { // it ends the agents that run
		busy = []string{keys.CopyLock}
	}
	lock, err := acquireCopyLock(ctx, to, r.URL, busy)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, lock.release(ctx)) }()

	there, err := readContents(ctx, to)
	if err != nil {
		return c, err
	}

	draft := state.PartialCopy{Environment: from.header.UUID, From: from.String()}
	err = beginCopy(ctx, lock.state, draft, len(there) == 0, func(tx *state.Tx, empty bool) error {
		return r.checkTarget(tx, from, empty)
	})
	if err != nil {
		return c, err
	}

	if r.Begun != nil {
		r.Begun()
	}
	callFault(r.Fault, "restore-begun")
	all, err := r.rewriteKeys(from, there)
	if err != nil {
		return c, fmt.Errorf("cannot restore the model: %w", err)
	}

	if r.Replace {
		if err := endAgents(ctx, lock.state, all); err != nil {
			return c, err
		}
	}

	copier := &copier{
		chunk:    from.readChunk,
		to:       to,
		progress: r.Progress,
		fault:    r.Fault,
		lockLost: lock.session.Done(),
	}
	if c, err = copier.copyAll(ctx, all); err != nil {
		return c, fmt.Errorf("cannot restore the model: %w", err)
	}

	callFault(r.Fault, "restore-copied")
	if err := r.finishTarget(ctx, lock.state); err != nil {
		return c, err
	}

	callFault(r.Fault, "restore-founded")
	return c, nil
}

// FindRestored returns the environment in the store, if it was made of that backup and nobody has run it
// since: a restoration was cut off after the state was whole. It returns false for any other store.
func FindRestored(
	ctx context.Context,
	url string,
	a *backupfile.Reader,
) (env state.Environment, found bool, err error) {
	source := &backupSource{header: a.Header, archive: a}
	st, err := storeurl.Open(ctx, url)
	if errors.Is(err, state.ErrNoStore) {
		return env, false, nil
	}
	if err != nil {
		return env, false, err
	}
	defer func() { err = errors.Join(err, st.Close()) }()

	err = state.OpenIn(st).View(ctx, func(v *state.View) error {
		if err := state.CheckFormat(v); err != nil {
			return nil // it is no whole environment
		}
		if env, err = v.Environment(); err != nil {
			return state.IgnoreNotFound(err)
		}
		_, held, err := v.ClaimHolder("0")
		found = env.Restored == source.String() && !held
		return err
	})

	return env, found && err == nil, err
}

// checkTarget returns ErrStoreExists if the store holds anything but leftovers of this restoration, or the
// environment to replace.
func (r Restoration) checkTarget(tx *state.Tx, from *backupSource, empty bool) error {
	left, half, err := keyspace.Load[state.PartialCopy](tx.Keys(), keys.PartialCopy)
	if err != nil {
		return err
	}
	if _, _, err := tx.Keys().Get(keys.Moved); err != nil { // it may be there
		return err
	}
	env, err := tx.Environment()

	switch {
	case err != nil && !errors.Is(err, state.ErrNotFound):
		return err
	case half && left.From != from.String() && !(r.Replace && left.Environment == from.header.UUID):
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot restore to %q: it holds an incomplete copy of a different model, from %q", r.URL, left.From)
	case half, empty, r.Replace && env.UUID == from.header.UUID:
		return nil
	case env.Name != "":
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot restore to %q: it holds the model %q, with the uuid %s", r.URL, env.Name, env.UUID)
	}

	return keyspace.Refuse(state.ErrStoreExists, "cannot restore to %q: it is not empty", r.URL)
}

// endAgents ends the agents and leaders of the environment: it takes their claims first, so that none
// begins again, and then removes their presence and leadership. It works in batches.
func endAgents(ctx context.Context, s *state.State, all []keyspace.KeyValue) error {
	c := &copier{to: s.Store()}
	for _, kv := range all {
		if isClaimKey(kv.Key) {
			if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
				return err
			}
		}
	}

	for _, prefix := range []string{keys.Presences, keys.Leaders} {
		kvs, err := state.Read(ctx, s, func(v *state.View) ([]keyspace.KeyValue, error) {
			return v.Keys().List(prefix)
		})
		if err != nil {
			return err
		}

		for _, kv := range kvs {
			if err := c.put(ctx, store.Op{Key: kv.Key, Delete: true}); err != nil {
				return err
			}
		}
	}

	return c.flush(ctx)
}

// finishTarget makes the restored store a whole environment.
func (r Restoration) finishTarget(ctx context.Context, s *state.State) error {
	if !r.Replace {
		if err := endLeftovers(ctx, s); err != nil {
			return fmt.Errorf("cannot end what ran in the old model: %w", err)
		}
		if err := r.renewStorages(ctx, s); err != nil {
			return fmt.Errorf("cannot mark storage to be made again: %w", err)
		}
	}

	return s.Update(ctx, func(tx *state.Tx) error {
		tx.Keys().Remove(keys.PartialCopy)
		return tx.Keys().Put(keys.Format, state.FormatRecord{Format: state.FormatVersion})
	})
}

// endLeftovers ends work that no agent of a new environment would end: dying relations, which have no
// members there, and actions that ran.
func endLeftovers(ctx context.Context, s *state.State) error {
	var relations []state.Relation
	var all []actions.Action
	err := s.View(ctx, func(v *state.View) (err error) {
		if relations, err = v.Relations(); err != nil {
			return err
		}
		all, err = actions.List(v, "")
		return err
	})
	if err != nil {
		return err
	}

	for _, r := range relations {
		if r.Life == state.Alive {
			continue
		}
		if err := s.Update(ctx, func(tx *state.Tx) error { return tx.RemoveRelationIfDone(r) }); err != nil {
			return err
		}
	}

	end := actions.Outcome{Message: "it ran when the backup was made, so its outcome is unknown"}
	for _, a := range all {
		if a.Status != actions.Running {
			continue
		}

		err := s.Update(ctx, func(tx *state.Tx) error {
			return actions.End(tx, a.ID, actions.Failed, end, time.Now())
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// renewStorages marks all storage of a new environment to be made again, empty, except storage whose content
// was restored. Its directories belonged to the former environment.
func (r Restoration) renewStorages(ctx context.Context, s *state.State) error {
	all, err := state.Read(ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}

	for _, one := range all {
		err := s.Update(ctx, func(tx *state.Tx) error {
			if slices.Contains(r.Storage, one.ID) {
				return tx.KeepStorage(one.ID)
			}
			return tx.RenewStorage(one.ID)
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// MarkStoreMoved marks a store that the environment with that uuid has left for a different one. Processes
// that still work there get ErrMoved. It does nothing if the store is gone, or holds a different
// environment.
func MarkStoreMoved(ctx context.Context, url, uuid, to string) (err error) {
	old, err := storeurl.Open(ctx, url)
	if errors.Is(err, state.ErrNoStore) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, old.Close()) }()

	err = state.OpenIn(old).Update(ctx, func(tx *state.Tx) error {
		if _, _, err := tx.Keys().Get(keys.Moved); err != nil { // it may be there
			return err
		}
		env, err := tx.Environment()
		if err != nil || env.UUID != uuid {
			return err
		}

		return tx.Keys().Put(keys.Moved, state.MovedRecord{To: to, Since: time.Now().UTC()})
	})

	return state.IgnoreNotFound(err)
}
