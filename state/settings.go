package state

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/store"
)

// Settings reads a unit's settings in a relation; they outlive its membership.
// ErrNotFound if it never was in.
func (v *View) Settings(id int, unit string) (Settings, error) {
	s, ok, err := v.readSettings(keys.Settings(id, unit))
	if err != nil {
		return s, err
	}
	if !ok {
		return s, refuse(ErrNotFound, "unit %q was never in relation-%d", unit, id)
	}

	return s, nil
}

// AppSettings reads a service's own settings in a relation; empty if there are none.
func (v *View) AppSettings(id int, service string) (Settings, error) {
	s, _, err := v.readSettings(keys.AppSettings(id, service))
	return s, err
}

// AppVersion reads the version of a service's own settings in a relation; 0 if there are none.
func (v *View) AppVersion(id int, service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.AppSettings(id, service))
	return doc.Version, err
}

// MergeSettings changes single keys of a unit's settings, and returns the changes by key. nil deletes a
// key. Keys that others changed meanwhile keep their values. If nothing changes it writes nothing, and the
// version stays. It returns ErrNotFound if the relation is gone, or if the unit never was in it. It costs
// two conditions and two operations of the transaction.
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
	if err != nil {
		return err
	}

	if !in {
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
		return nil, refuse(ErrNotFound, "application %q is not part of %s", service, r)
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

// TouchSettings gives a unit's settings in a relation a new version without changing them, so that the
// other members' changed hooks run. It does nothing for a unit that is no member.
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

const (
	// MaxSetting is how long one settings value may be, in bytes.
	MaxSetting = 16 << 20
	// maxInlineBytes is how large a settings node may be in its key, in bytes of
	// JSON; larger ones are blobs. So are those of an update that has written
	// maxInlineTotal already: a hub's hook writes to dozens of relations at once.
	maxInlineBytes = 64 << 10
	maxInlineTotal = 512 << 10
	// MaxNodesPerUpdate is about how many settings nodes one update can change: each
	// costs two conditions and two operations, and three where it is large.
	MaxNodesPerUpdate = store.MaxOps/2 - 6
)

// Settings is a settings node as it was read. Version grows with every change.
type Settings struct {
	Values  map[string]string
	Version int64
}

// Change is one key that MergeSettings changed; a nil New or Old is an unset key.
type Change struct {
	Key      string
	Old, New *string
}

// settingsDoc is a node in the store: its values, or the blob that holds them.
type settingsDoc struct {
	Version int64             `json:"version"`
	Values  map[string]string `json:"values,omitempty"`
	Blob    string            `json:"blob,omitempty"` // sha256
}

func (v *View) readSettings(key string) (Settings, bool, error) {
	doc, ok, err := keyspace.Load[settingsDoc](v.keys, key)
	if err != nil {
		return Settings{}, false, err
	}
	values, err := v.readValues(doc)
	return Settings{Values: values, Version: doc.Version}, ok, err
}

// readValues never returns nil without an error.
func (v *View) readValues(doc settingsDoc) (map[string]string, error) {
	if doc.Blob == "" {
		if doc.Values == nil {
			return map[string]string{}, nil
		}
		return maps.Clone(doc.Values), nil
	}

	data, err := v.keys.ReadBlob(doc.Blob)
	if errors.Is(err, ErrNotFound) { // a damaged store is not to be taken for a unit that never was in
		return nil, fmt.Errorf("cannot read settings: the store is damaged: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read settings: %w", err)
	}

	values := map[string]string{}
	err = json.Unmarshal(data, &values)
	return values, err
}

// merge changes the values in place, and lists the keys that differ.
func (s Settings) merge(changes map[string]*string) (changed []Change, err error) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		old, had := s.Values[key]
		c := Change{Key: key, New: value}
		if had {
			c.Old = &old
		}

		switch {
		case value == nil && !had, value != nil && had && old == *value:
			continue
		case value == nil:
			delete(s.Values, key)
		default:
			if err := CheckSetting(key, *value); err != nil {
				return nil, err
			}
			s.Values[key] = *value
		}

		changed = append(changed, c)
	}

	return changed, nil
}

// CheckSetting returns an error for a setting that no tool could hand on.
func CheckSetting(key, value string) error {
	switch {
	case key == "":
		return fmt.Errorf("cannot change settings: a key is empty")
	case len(value) > MaxSetting:
		return fmt.Errorf("cannot set %q: its value has %d bytes, at most %d", key, len(value), MaxSetting)
	case !utf8.ValidString(key) || !utf8.ValidString(value) || strings.ContainsRune(key, 0) ||
		strings.ContainsRune(value, 0):
		return fmt.Errorf("cannot set %q: it is not UTF-8, or has a NUL byte: encode it, as with base64", key)
	}

	return nil
}

func (tx *Tx) putSettingsNode(key string, version int64, values map[string]string) error {
	data, err := keyspace.Encode(key, values)
	if err != nil {
		return err
	}
	if len(data) <= maxInlineBytes && tx.keys.WrittenBytes()+len(data) <= maxInlineTotal {
		return tx.keys.Put(key, settingsDoc{Version: version, Values: values})
	}

	return tx.keys.Put(key, settingsDoc{Version: version, Blob: tx.keys.AddBlob(data)})
}

// mergeSettingsNode is for a node that is nobody's membership.
func (tx *Tx) mergeSettingsNode(key string, changes map[string]*string) ([]Change, error) {
	s, _, err := tx.readSettings(key)
	if err != nil {
		return nil, err
	}
	changed, err := s.merge(changes)
	if err != nil || len(changed) == 0 {
		return nil, err
	}

	return changed, tx.putSettingsNode(key, s.Version+1, s.Values)
}

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
