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

// Settings reads a unit's settings in a relation. The settings stay when the unit leaves the relation.
// Settings returns ErrNotFound if the unit was never in the relation.
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

// AppSettings reads a service's own settings in a relation. They are empty if the service has set none.
func (v *View) AppSettings(id int, service string) (Settings, error) {
	s, _, err := v.readSettings(keys.AppSettings(id, service))
	return s, err
}

// AppVersion reads the version of a service's own settings in a relation; 0 if there are none.
func (v *View) AppVersion(id int, service string) (int64, error) {
	doc, _, err := keyspace.Load[settingsDoc](v.keys, keys.AppSettings(id, service))
	return doc.Version, err
}

// MergeSettings changes some keys of a unit's settings and returns the changes, by key. A nil value deletes a
// key. All other keys keep their values. If nothing changes, it writes nothing and the version stays the
// same. It returns ErrNotFound if the relation is gone, or if the unit was never in it. For a member, it adds two
// conditions and two operations to the transaction, and more if the settings become a blob.
func (tx *Tx) MergeSettings(id int, unit string, changes map[string]*string) ([]Change, error) {
	s, err := tx.Settings(id, unit)
	if err != nil {
		return nil, err
	}
	if err := tx.checkRelationExists(id, unit); err != nil {
		return nil, err
	}

	changed, err := s.merge(changes)
	if err != nil {
		return nil, err
	}
	if len(changed) == 0 {
		return nil, nil
	}

	return changed, tx.putSettings(id, unit, s.Version+1, s.Values)
}

// checkRelationExists returns ErrNotFound if the relation is gone. If the unit is a member, the relation
// exists, and checkRelationExists does not read the relation's record. So the commit has fewer conditions when a
// hook writes to dozens of relations.
func (v *View) checkRelationExists(id int, unit string) error {
	_, in, err := v.Member(id, unit)
	if err != nil {
		return err
	}
	if in {
		return nil // only an existing relation has members
	}
	_, err = v.Relation(id)
	return err
}

// MergeAppSettings changes some of a service's own settings in a relation, as MergeSettings does. It returns
// ErrNotFound if the relation is gone, or the service is not part of it.
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

// putSettings writes a unit's settings, and their version into the unit's membership, if the unit is a member. Other
// members notice the change by that version.
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

// TouchSettings gives a unit's settings in a relation a new version without changing them, so that the other
// members' changed hooks run. It does nothing for a unit that is not a member.
func (tx *Tx) TouchSettings(id int, unit string) error {
	_, in, err := tx.Member(id, unit)
	if err != nil {
		return err
	}
	if !in {
		return nil
	}
	s, _, err := tx.readSettings(keys.Settings(id, unit))
	if err != nil {
		return err
	}

	return tx.putSettings(id, unit, s.Version+1, s.Values)
}

const (
	// MaxSetting limits one settings value, in bytes.
	MaxSetting = 16 << 20
	// maxInlineBytes limits the settings that are stored in their own record, in bytes of JSON. Larger
	// settings are stored as blobs.
	maxInlineBytes = 64 << 10
	// maxInlineTotal limits the settings that one update stores in their records, in bytes, since a hook can
	// write to dozens of relations at once. The rest are stored as blobs.
	maxInlineTotal = 512 << 10
	// MaxNodesPerUpdate is approximately how many units' settings one update can change. Each change needs two
	// conditions and two operations, or three operations if the settings are large.
	MaxNodesPerUpdate = store.MaxOps/2 - 6
)

// Settings are the settings of a unit or service as they were read. Version grows with every change.
type Settings struct {
	Values  map[string]string
	Version int64
}

// Change is the change of one key by MergeSettings. Old is nil if the key was not set before, and New is nil
// if it is no longer set.
type Change struct {
	Key      string
	Old, New *string
}

// isSame reports whether the old and new values are the same.
func (c Change) isSame() bool {
	if c.Old == nil || c.New == nil {
		return c.Old == c.New // the same only if both are nil
	}
	return *c.Old == *c.New
}

// settingsDoc is the record of settings in the store. It has either the values or the blob that holds them.
type settingsDoc struct {
	Version int64             `json:"version"`
	Values  map[string]string `json:"values,omitempty"`
	Blob    string            `json:"blob,omitempty"` // the blob's SHA-256
}

// readSettings reads the settings at key. If there are none, ok is false and the settings are empty. Agents
// write the record and its blob. If one of them is damaged, [View.Skips] accepts the error, which names key.
func (v *View) readSettings(key string) (s Settings, ok bool, err error) {
	doc, ok, err := keyspace.Load[settingsDoc](v.keys, key)
	if err != nil {
		return Settings{}, false, err
	}
	values, err := v.readValues(key, doc)
	return Settings{Values: values, Version: doc.Version}, ok, err
}

// readValues returns a copy of the values in the record at key, which it reads from the record's blob if there
// is one. Without an error, the map is never nil.
func (v *View) readValues(key string, doc settingsDoc) (map[string]string, error) {
	if doc.Blob == "" {
		if doc.Values == nil {
			return map[string]string{}, nil
		}
		return maps.Clone(doc.Values), nil
	}

	data, err := v.keys.ReadBlob(doc.Blob)
	if errors.Is(err, ErrNotFound) || errors.Is(err, keyspace.ErrDamaged) {
		// The error is not wrapped, since for callers ErrNotFound means that the unit was never in the
		// relation.
		return nil, keyspace.NewDamage(key, "the store is damaged: %v", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read settings: %w", err)
	}

	values := map[string]string{}
	if err := json.Unmarshal(data, &values); err != nil {
		return nil, keyspace.NewDamage(key, "its blob has no settings: %v", err)
	}
	if values == nil {
		values = map[string]string{} // the blob is the JSON null
	}
	return values, nil
}

// merge changes the values in place, and returns the changes of the keys whose values differ. A nil value
// deletes a key. After the error of an invalid key or value, the caller must not use the values, since some may have
// changed.
func (s Settings) merge(changes map[string]*string) (changed []Change, err error) {
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		value := changes[key]
		c := Change{Key: key, New: value}
		if old, had := s.Values[key]; had {
			c.Old = &old
		}
		if c.isSame() {
			continue
		}

		changed = append(changed, c)
		if value == nil {
			delete(s.Values, key)
			continue
		}
		if err := CheckSetting(key, *value); err != nil {
			return nil, err
		}
		s.Values[key] = *value
	}

	return changed, nil
}

// CheckSetting returns an error if the key is empty, if the value is too long, or if either cannot be passed
// to a hook tool.
func CheckSetting(key, value string) error {
	switch {
	case key == "":
		return fmt.Errorf("cannot change settings: a key is empty")
	case len(value) > MaxSetting:
		return fmt.Errorf("cannot set %q: the value has %d bytes; the limit is %d", key, len(value), MaxSetting)
	case !isText(key) || !isText(value):
		return fmt.Errorf("cannot set %q: the value is not UTF-8, or has a NUL byte: encode it, for example with base64", key)
	}

	return nil
}

// isText reports whether s is valid UTF-8 without a NUL byte.
func isText(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }

// putSettingsNode writes settings at key. Their record has the values if these fit into maxInlineBytes, and
// with the transaction's earlier writes into maxInlineTotal. Otherwise it refers to a blob with the values.
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

// mergeSettingsNode merges changes into the settings at key, and returns the changes. It writes nothing if
// all values are the same. It must not be used for the settings of a relation's members, whose version must also be
// in the membership.
func (tx *Tx) mergeSettingsNode(key string, changes map[string]*string) ([]Change, error) {
	s, _, err := tx.readSettings(key)
	if err != nil {
		return nil, err
	}
	changed, err := s.merge(changes)
	if err != nil {
		return nil, err
	}
	if len(changed) == 0 {
		return nil, nil
	}

	return changed, tx.putSettingsNode(key, s.Version+1, s.Values)
}

// UnitState reads the values that a unit's charm has stored with state-set. They are empty if the charm has
// stored none.
func (v *View) UnitState(unit string) (Settings, error) {
	s, _, err := v.readSettings(keys.UnitState(unit))
	return s, err
}

// MergeUnitState changes some of a unit's stored values, as MergeSettings does. It returns ErrNotFound if the
// unit is gone.
func (tx *Tx) MergeUnitState(unit string, changes map[string]*string) ([]Change, error) {
	if _, err := tx.Unit(unit); err != nil {
		return nil, fmt.Errorf("cannot change the unit's state: %w", err)
	}
	return tx.mergeSettingsNode(keys.UnitState(unit), changes)
}
