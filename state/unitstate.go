package state

import (
	"fmt"

	"bijou/state/keys"
)

// UnitState reads a unit's own notes; empty if there are none.
func (v *View) UnitState(unit string) (Settings, error) {
	s, _, err := v.readSettings(keys.UnitState(unit))
	return s, err
}

// MergeUnitState changes single keys of a unit's notes, as MergeSettings does.
// ErrNotFound if the unit is gone.
func (tx *Tx) MergeUnitState(unit string, changes map[string]*string) ([]Change, error) {
	if _, err := tx.Unit(unit); err != nil {
		return nil, fmt.Errorf("cannot change the unit's state: %w", err)
	}
	return tx.mergeSettingsNode(keys.UnitState(unit), changes)
}
