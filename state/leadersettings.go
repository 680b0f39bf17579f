package state

import (
	"fmt"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// LeaderSettings reads the settings that a service's leader shares with its peers. They are empty if there
// are none.
func (v *View) LeaderSettings(service string) (Settings, error) {
	s, _, err := v.readSettings(keys.LeaderSettings(service))
	return s, err
}

// LeaderSettingsVersion reads only the version of the leader settings; 0 if there are none.
func (v *View) LeaderSettingsVersion(service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.LeaderSettings(service))
	return doc.Version, err
}

// MergeLeaderSettings changes some keys of the leader settings, as MergeSettings does. It returns
// ErrNotLeader if the unit does not lead the service, and ErrNotFound if the service is gone.
func (tx *Tx) MergeLeaderSettings(service, unit string, changes map[string]*string) ([]Change, error) {
	if err := tx.CheckLeader(service, unit); err != nil {
		return nil, err
	}
	if _, err := tx.Service(service); err != nil {
		return nil, fmt.Errorf("cannot change leader settings: %w", err)
	}

	return tx.mergeSettingsNode(keys.LeaderSettings(service), changes)
}
