package uniter

import (
	"context"
	"fmt"

	"bijou/agent/uniter/decide"
	"bijou/state"
)

// bindStorage creates the storage's directory, binds the directory to its location in the unit, and records
// the location. If s.Made is false, it first checks that the path is free, and commits that the directory can
// exist from now on. So it never uses a directory that does not belong to the storage.
func (u *uniter) bindStorage(ctx context.Context, s state.Storage, environment string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot attach storage %q: %w", s.ID, err)
		}
	}()

	bound := u.Folder.StorageOf(environment, s)
	if !s.Made {
		if err := bound.CheckFree(); err != nil {
			return err
		}

		err := u.commitStep(ctx, "storage-made", func(tx *state.Tx) error { return tx.MarkStorageMade(s.ID) })
		if err != nil {
			return err
		}
	}

	if err := u.Folder.BindStorage(bound); err != nil {
		return err
	}
	u.Log.Info("storage is in place", "storage", s.ID, "location", bound.Location, "pool", s.Pool)
	return u.commitStep(ctx, "storage-bound", func(tx *state.Tx) error {
		return tx.SetStorageBound(s.ID, bound.Location)
	})
}

// rebindStorage binds the unit's storage to its locations again, since a reboot removes the mounts. It does
// so once, before any hook of this agent runs. It skips storage that is not bound yet, and storage that only
// has to be released. It returns an error if binding fails. For storage that is detaching, and for a unit
// that is not alive, it only logs the failure, since the unit must release the storage soon.
func (u *uniter) rebindStorage(snap decide.Snapshot) error {
	if u.rebound || snap.Gone {
		return nil
	}

	for _, s := range snap.Storages {
		if s.State == state.StoragePending || s.State == state.StorageUnbinding {
			continue
		}

		err := u.Folder.BindStorage(u.Folder.StorageOf(snap.Environment.Name, s))
		if err == nil {
			continue
		}

		mustRelease := s.State == state.StorageDetaching || snap.Unit.Life != state.Alive
		if !mustRelease {
			return fmt.Errorf("cannot attach storage %q: %w", s.ID, err)
		}
		u.Log.Warn("storage that the unit must release is missing", "storage", s.ID, "error", err)
	}

	u.rebound = true
	return nil
}

// releaseStorage unbinds the storage from its location in the unit, and commits that the unit no longer has it.
func (u *uniter) releaseStorage(ctx context.Context, id string) error {
	if err := u.Folder.ReleaseStorage(id); err != nil {
		return fmt.Errorf("cannot detach storage %q: %w", id, err)
	}
	u.Log.Info("storage detached", "storage", id)
	return u.commitStep(ctx, "storage-released", func(tx *state.Tx) error { return tx.ReleaseStorage(id) })
}
