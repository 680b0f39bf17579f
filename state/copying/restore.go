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

// Restoration describes how a backup is restored. Without Replace the result is a new environment: the
// instances and agents of the old environment do not belong to it. With Replace the result is the same
// environment: its records in the store are replaced, and all agents that were started before the restoration
// end.
type Restoration struct {
	URL     string // of the store to restore to
	Replace bool
	// Adopt makes agents accept their units' directories without comparing them with the backup's records.
	// Even then the directories of storages must exist.
	Adopt bool
	// Storage has the ids of the storages whose content was restored. In a new environment all other storages
	// begin empty.
	Storage []string
	// SetAside is called after Replace has moved away the files of a store that was replaced while it was open.
	// directory is the directory that has these files now. SetAside can be nil.
	SetAside func(directory string)
	// Begun is called when the restoration has begun to change the store. It can be nil.
	Begun func()
	// Change completes the environment's record, whose Config is not nil. It can be nil.
	Change func(*state.Environment)
	// Progress receives a report for each key and chunk that is copied, and for each that is compared.
	Progress keyspace.Progress
	// Fault is called at named points, so that tests can kill the process there: restore-begun, migrate-batch,
	// restore-copied, restore-founded. It can be nil.
	Fault func(point string)
}

// Restore restores the environment in a backup. The restored environment cannot be opened before all keys
// were written, read back and compared. If Restore was interrupted, the caller must call it again.
//
// Restore returns ErrStoreExists if the store holds anything but the leftovers of a restoration of this backup
// or, with Replace, the same environment or an incomplete copy of it. It returns ErrRunning if an agent, a
// leader, or another migration or restoration uses the store. With Replace it ends agents and leaders instead,
// but returns ErrRunning if a process still has a file open of a store that was replaced while it was open.
func Restore(ctx context.Context, r Restoration, a *backupfile.Reader) (summary CopySummary, err error) {
	from, err := newBackupSource(a)
	if err != nil {
		return summary, err
	}

	// The mark of a store that was replaced while it was open would keep Create from opening the store.
	if r.Replace {
		if err := r.setAsideReplaced(); err != nil {
			return summary, err
		}
	}

	to, err := storeurl.Create(ctx, r.URL)
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()

	return r.restoreTo(ctx, from, to)
}

// setAsideReplaced moves the store's files into a new directory, and tells r.SetAside, if the files were
// replaced while a process had the store open. Otherwise it does nothing. It returns ErrRunning if a process
// still has one of the files open.
func (r Restoration) setAsideReplaced() error {
	directory, err := storeurl.SetAsideReplaced(r.URL)
	var held *sqlite.Held
	if errors.As(err, &held) {
		return keyspace.Refuse(state.ErrRunning, "%v", held)
	}
	if err != nil {
		return err
	}

	if directory != "" && r.SetAside != nil {
		r.SetAside(directory)
	}
	return nil
}

// restoreTo restores the backup to a store that is open. With Replace it ends all agents and leaders of the
// environment in that store before it copies the keys.
func (r Restoration) restoreTo(
	ctx context.Context,
	from *backupSource,
	to store.Store,
) (summary CopySummary, err error) {
	mustBeAbsent := occupantPrefixes()
	// With Replace, endAgents ends running agents, and only another migration or restoration is in the way.
	if r.Replace {
		mustBeAbsent = []string{keys.CopyLock}
	}
	lock, err := acquireCopyLock(ctx, to, r.URL, mustBeAbsent)
	if err != nil {
		return summary, err
	}
	defer func() { err = errors.Join(err, lock.release(ctx)) }()

	existing, err := r.prepareTarget(ctx, lock.state, from)
	if err != nil {
		return summary, err
	}
	if r.Begun != nil {
		r.Begun()
	}
	callFault(r.Fault, "restore-begun")

	restored, err := r.rewriteKeys(from, existing)
	if err != nil {
		return summary, fmt.Errorf("cannot restore the model: %w", err)
	}
	if r.Replace {
		if err := endAgents(ctx, lock.state, restored); err != nil {
			return summary, err
		}
	}

	copier := &copier{
		chunk:    from.readChunk,
		to:       to,
		progress: r.Progress,
		fault:    r.Fault,
		lockLost: lock.session.Done(),
	}
	if summary, err = copier.copyAll(ctx, restored); err != nil {
		return summary, fmt.Errorf("cannot restore the model: %w", err)
	}

	callFault(r.Fault, "restore-copied")
	if err := r.finishTarget(ctx, lock.state); err != nil {
		return summary, err
	}

	callFault(r.Fault, "restore-founded")
	return summary, nil
}

// prepareTarget reads the store's contents, and then marks the store as an incomplete copy of the backup. The returned
// contents do not include that mark. If checkTarget refuses the store, prepareTarget marks nothing, and returns
// ErrStoreExists.
func (r Restoration) prepareTarget(
	ctx context.Context,
	target *state.State,
	from *backupSource,
) ([]keyspace.KeyValue, error) {
	existing, err := readContents(ctx, target.Store())
	if err != nil {
		return nil, err
	}

	draft := state.PartialCopy{Environment: from.header.UUID, From: from.String()}
	wasEmpty := len(existing) == 0
	// Another process can write to the store after readContents. So beginCopy looks again in its transaction.
	err = beginCopy(ctx, target, draft, wasEmpty, func(tx *state.Tx, isEmpty bool) error {
		return r.checkTarget(tx, from, isEmpty)
	})
	if err != nil {
		return nil, err
	}

	return existing, nil
}

// FindRestored returns the environment in the store if it was restored from this backup, and no agent of
// machine 0 has run since then. The store has such an environment if a restoration was interrupted after the
// store had become complete. For any other store, and if there is no store, FindRestored returns found false.
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

	return findRestored(ctx, state.OpenIn(st), source.String())
}

// findRestored does what FindRestored does, for an open store. source is the text that [backupSource.String]
// returns for the backup.
func findRestored(ctx context.Context, s *state.State, source string) (env state.Environment, found bool, err error) {
	err = s.View(ctx, func(v *state.View) error {
		err := state.CheckFormat(v)
		if errors.Is(err, state.ErrFormat) || errors.Is(err, state.ErrMoved) || errors.Is(err, keyspace.ErrDamaged) {
			// The store has no complete environment that this binary can open.
			return nil
		}
		if err != nil {
			return err
		}

		if env, err = v.Environment(); err != nil {
			return state.IgnoreNotFound(err)
		}
		// An agent of machine 0 that has run has left its claim.
		_, isClaimed, err := v.ClaimHolder("0")
		found = env.Restored == source && !isClaimed
		return err
	})
	if err != nil {
		return env, false, err
	}

	return env, found, nil
}

// checkTarget returns ErrStoreExists unless the store is empty, holds the leftovers of a restoration of the
// same backup, or, with Replace, holds the same environment or an incomplete copy of it. isEmpty says that the
// store has no contents.
func (r Restoration) checkTarget(tx *state.Tx, from *backupSource, isEmpty bool) error {
	draft, hasDraft, err := keyspace.Load[state.PartialCopy](tx.Keys(), keys.PartialCopy)
	if err != nil {
		return err
	}
	// beginCopy removes this key if it exists. Read it, so that the commit fails if the key changes.
	if _, _, err := tx.Keys().Get(keys.Moved); err != nil {
		return err
	}
	env, err := tx.Environment()
	if err != nil && !errors.Is(err, state.ErrNotFound) {
		return err
	}

	isOwnDraft := draft.From == from.String() || r.Replace && draft.Environment == from.header.UUID
	isReplaced := r.Replace && env.UUID == from.header.UUID

	switch {
	case hasDraft && !isOwnDraft:
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot restore to %q: it holds an incomplete copy of a different model, from %q", r.URL, draft.From)
	case hasDraft, isEmpty, isReplaced:
		return nil
	case env.Name != "":
		return keyspace.Refuse(state.ErrStoreExists,
			"cannot restore to %q: it holds the model %q, with the uuid %s", r.URL, env.Name, env.UUID)
	}

	return keyspace.Refuse(state.ErrStoreExists, "cannot restore to %q: it is not empty", r.URL)
}

// endAgents makes the agents and leaders of the environment end. It first writes the claims among the
// restored keys, which have no holders, so that the agents can no longer write. Then it removes their
// presences and leaderships. It works in batches.
func endAgents(ctx context.Context, s *state.State, restored []keyspace.KeyValue) error {
	c := &copier{to: s.Store()}
	for _, kv := range restored {
		if isClaimKey(kv.Key) {
			if err := c.put(ctx, store.Op{Key: kv.Key, Value: kv.Value}); err != nil {
				return err
			}
		}
	}

	// put keeps the order, so no agent loses its presence before its claim.
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

// finishTarget completes the restored environment, so that it can be opened. Without Replace the environment is
// new, so finishTarget first ends the work that the old environment has left, and renews the storages.
func (r Restoration) finishTarget(ctx context.Context, s *state.State) error {
	if !r.Replace {
		if err := endLeftovers(ctx, s); err != nil {
			return fmt.Errorf("cannot end the hooks and actions of the old model: %w", err)
		}
		if err := r.renewStorages(ctx, s); err != nil {
			return fmt.Errorf("cannot mark storage to be created again: %w", err)
		}
	}

	return s.Update(ctx, func(tx *state.Tx) error {
		tx.Keys().Remove(keys.PartialCopy)
		return tx.Keys().Put(keys.Format, state.FormatRecord{Format: state.FormatVersion})
	})
}

// endLeftovers ends work that no agent of a new environment would end: it removes dying relations that have no
// members, and marks actions that were running as failed.
func endLeftovers(ctx context.Context, s *state.State) error {
	var relations []state.Relation
	var listed []actions.Action
	err := s.View(ctx, func(v *state.View) (err error) {
		if relations, err = v.Relations(); err != nil {
			return err
		}
		listed, err = actions.List(v, "") // of all units
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

	outcome := actions.Outcome{Message: "the action was running when the backup was made, so its outcome is unknown"}
	for _, a := range listed {
		if a.Status != actions.Running {
			continue
		}

		err := s.Update(ctx, func(tx *state.Tx) error {
			return actions.End(tx, a.ID, actions.Failed, outcome, time.Now())
		})
		// Agents write the records of actions, so a damaged record of an action must not prevent the
		// restoration. Skips reports it. Agents do not write the records of relations.
		if err != nil && !s.Skips(err) {
			return err
		}
	}

	return nil
}

// renewStorages marks the storages of a new environment to be created again, since their directories belong
// to the old environment. It keeps the storages in r.Storage, whose content was restored. Of the others, it
// removes those that no unit has, or that are leaving their unit.
func (r Restoration) renewStorages(ctx context.Context, s *state.State) error {
	storages, err := state.Read(ctx, s, (*state.View).Storages)
	if err != nil {
		return err
	}

	for _, storage := range storages {
		err := s.Update(ctx, func(tx *state.Tx) error {
			if slices.Contains(r.Storage, storage.ID) {
				return tx.KeepStorage(storage.ID)
			}
			return tx.RenewStorage(storage.ID)
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// MarkStoreMoved marks the old store at the URL as moved. to is the URL of the store that now has the
// environment with this uuid. Processes that still use the old store get ErrMoved. MarkStoreMoved does
// nothing if the old store no longer exists, holds no environment, or holds a different one.
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
		// The key may exist already. Read it, so that the commit fails if the key changes.
		if _, _, err := tx.Keys().Get(keys.Moved); err != nil {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if env.UUID != uuid {
			return nil
		}

		return tx.Keys().Put(keys.Moved, state.MovedRecord{To: to, Since: time.Now().UTC()})
	})

	return state.IgnoreNotFound(err)
}
