package agent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/osutil"
	"bijou/state/unitdir"
)

// removeStaleFolders removes the directories of units other than the given ones. It logs a directory that it
// cannot remove, and continues. It creates the parents of these directories if they are missing.
func (m *machineAgent) removeStaleFolders(units []string) error {
	// Older binaries call the directory of a unit units/SERVICE-N, instead of agents/unit-SERVICE-N.
	for _, root := range []struct{ name, prefix string }{{"agents", ""}, {"units", "unit-"}} {
		path := filepath.Join(m.host.Dir, root.name)
		if err := osutil.MkdirAll(path, 0o755); err != nil {
			return err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}

		for _, e := range entries {
			unit, err := charm.ParseUnitTag(root.prefix + e.Name())
			if err != nil || slices.Contains(units, unit) {
				continue
			}

			// Remove removes the unit's directory under both names.
			folder := unitdir.Of(m.host.Dir, unit)
			if err := folder.Remove(); err != nil {
				m.Log.Warn("cannot remove the directory of a removed unit", "folder", folder, "error", err)
			}
		}
	}

	return nil
}

// removeStorage removes a storage's directory, and then its record. It does nothing if a unit has the storage,
// if the storage is not being removed, or if its record is damaged.
func (m *machineAgent) removeStorage(ctx context.Context, id, environment string) error {
	s, err := state.Read(ctx, m.State, func(v *state.View) (state.Storage, error) { return v.Storage(id) })
	if m.State.Skips(err) {
		return nil // the record is damaged
	}
	if err != nil {
		return fmt.Errorf("cannot remove storage %q: %w", id, err)
	}
	if s.Unit != "" || s.Life == state.Alive {
		return nil
	}

	m.faultPoint("before-storage-removed")
	if err := unitdir.StorageOf(m.host.Dir, environment, s).RemoveAll(); err != nil {
		return fmt.Errorf("cannot remove storage %q: %w", id, err)
	}
	m.Log.Info("storage removed", "storage", id)
	m.faultPoint("after-storage-removed")
	return m.host.presence.updaterFor(state.MachineAgent(m.Machine))(ctx, func(tx *state.Tx) error {
		return tx.EndStorage(id)
	})
}
