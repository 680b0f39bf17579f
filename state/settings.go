package state

import (
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Settings reads a unit's settings in a relation; they outlive its membership.
// ErrNotFound if it never was in.
func (v *View) Settings(id int, unit string) (Settings, error) {
	s, ok, err := v.readSettings(keys.Settings(id, unit))
	if err == nil && !ok {
		err = refuse(ErrNotFound, "unit %q was never in relation-%d", unit, id)
	}
	return s, err
}

// AppSettings reads a service's own settings in a relation; empty if there are none.
func (v *View) AppSettings(id int, service string) (Settings, error) {
	s, _, err := v.readSettings(keys.AppSettings(id, service))
	return s, err
}

// AppVersion reads the version of a service's own settings in a relation; 0 if there are
// none.
func (v *View) AppVersion(id int, service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.AppSettings(id, service))
	return doc.Version, err
}

// MergeSettings changes single keys of a unit's settings; nil deletes one. Keys that
// others changed meanwhile keep their values; equal values write nothing and make no new
// version. It returns what changed, by key. ErrNotFound if the unit never was in the
// relation, or the relation is gone. It costs two conditions and two operations of the
// transaction.
func (tx *Tx) MergeSettings(id int, unit string, changes map[string]*string) ([]Change, error) {
	s, err := tx.Settings(id, unit)
	if err != nil {
		return nil, err
	}
	if err := tx.checkRelationExists(id, unit); err != nil {
		return nil, err
	}
	changed, err := s.merge(changes)
	if err != nil || len(changed) == 0 {
		return nil, err
	}
	return changed, tx.putSettings(id, unit, s.Version+1, s.Values)
}

// checkRelationExists refuses a relation that is gone. A member shows that it is not,
// without a further condition: a hub's hook writes to dozens of relations at once.
func (v *View) checkRelationExists(id int, unit string) error {
	_, in, err := v.Member(id, unit)
	if err == nil && !in {
		_, err = v.Relation(id)
	}
	return err
}

// MergeAppSettings is MergeSettings for a service's own settings.
func (tx *Tx) MergeAppSettings(id int, service string, changes map[string]*string) ([]Change, error) {
	r, err := tx.Relation(id)
	if err != nil {
		return nil, err
	}
	if _, ok := r.Endpoint(service); !ok {
		return nil, refuse(ErrNotFound, "service %q is no part of %s", service, r)
	}
	return tx.mergeSettingsNode(keys.AppSettings(id, service), changes)
}

// putSettings writes a unit's node, and its version into the membership.
func (tx *Tx) putSettings(id int, unit string, version int64, values map[string]string) error {
	m, in, err := tx.Member(id, unit)
	if err != nil {
		return err
	}
	if in {
		m.Version = version
		if err := tx.keys.Put(keys.Member(id, unit), m); err != nil {
			return err
		}
	}
	return tx.putSettingsNode(keys.Settings(id, unit), version, values)
}

// TouchSettings gives a unit's settings in a relation a new version without
// changing them, so that the hooks of those who watch them run. A unit that is
// not in makes no difference.
func (tx *Tx) TouchSettings(id int, unit string) error {
	_, in, err := tx.Member(id, unit)
	if err != nil || !in {
		return err
	}
	s, _, err := tx.readSettings(keys.Settings(id, unit))
	if err != nil {
		return err
	}
	return tx.putSettings(id, unit, s.Version+1, s.Values)
}
