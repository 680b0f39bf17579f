package state

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/secret"
	"bijou/state/store"
)

// Config holds the options of a service that the operator has set. Version grows with every change.
type Config struct {
	Values  map[string]any // string, int64, float64 or bool
	Version int64
	History []ConfigChange // the last changes, the oldest first
}

// ConfigChange records a change of a service's options. It does not include the values, since an option can
// be a password.
type ConfigChange struct {
	At      time.Time `json:"at"`
	By      string    `json:"by"`      // USER@HOST
	Options []string  `json:"options"` // the names of the options
}

const (
	// maxConfigHistory is how many changes of a service's options are recorded.
	maxConfigHistory = 20
	// maxHistoryOptions limits the options that are recorded for one change.
	maxHistoryOptions = 20
)

// configDoc is the record of a Config. Its raw values distinguish whole floats from ints: 2.0 is a float, 2
// an int.
type configDoc struct {
	Version int64                      `json:"version"`
	Values  map[string]json.RawMessage `json:"values"`
	History []ConfigChange             `json:"history,omitempty"`
}

// Config reads the options that the operator has set. If none was ever set, it returns a Config without values. It
// returns ErrNotFound if there is no such service.
func (v *View) Config(service string) (Config, error) {
	doc, ok, err := keyspace.Load[configDoc](v.keys, keys.Config(service))
	if err != nil {
		return Config{}, err
	}
	if !ok {
		// No option was ever set, or the service does not exist.
		_, err := v.Service(service)
		return Config{Values: map[string]any{}}, err
	}

	c := Config{Values: make(map[string]any, len(doc.Values)), Version: doc.Version, History: doc.History}
	for name, raw := range doc.Values {
		if c.Values[name], err = decodeOption(string(raw)); err != nil {
			return Config{}, err
		}
	}

	return c, nil
}

// EffectiveConfig returns the configuration that a hook reads. It has every option of the charm with its
// value. An option that is not set, or whose value no longer has the option's type, has its default, or nil if
// there is none. An empty charmURL means the service's charm.
func (v *View) EffectiveConfig(service, charmURL string) (map[string]any, error) {
	ch, err := v.CharmOf(service, charmURL)
	if err != nil {
		return nil, err
	}
	c, err := v.Config(service)
	return ch.Config.Effective(c.Values), err
}

// SetConfig changes options of a service and returns the names of the changed options. It converts a string
// to the option's type, as `juju set` does. Any other value must have that type. A nil value resets an option
// to its default. If a name is unknown or a value is invalid, it returns an error and sets no option. It
// writes nothing if nothing changes.
func (tx *Tx) SetConfig(service string, changes map[string]any) (changed []string, err error) {
	const isNew = false
	return tx.setConfig(service, changes, isNew)
}

// setConfig sets options as SetConfig does. isNew is true if the same transaction adds the service. An option
// can then name a secret that is not yet granted to the service.
func (tx *Tx) setConfig(service string, changes map[string]any, isNew bool) (changed []string, err error) {
	s, err := tx.AliveService(service)
	if err != nil {
		return nil, err
	}
	ch, err := tx.Charm(s.Charm)
	if err != nil {
		return nil, err
	}
	c, err := tx.Config(service)
	if err != nil {
		return nil, err
	}

	for _, name := range slices.Sorted(maps.Keys(changes)) {
		value, err := convertOption(&ch.Config, name, changes[name])
		if err != nil {
			return nil, err
		}
		if ch.Config.Options[name].Secret {
			if err := tx.CheckSecretOption(service, name, value, isNew); err != nil {
				return nil, err
			}
		}

		if !reflect.DeepEqual(c.Values[name], value) {
			changed = append(changed, name)
		}
		c.Values[name] = value
	}

	if len(changed) == 0 {
		return nil, nil
	}
	if err := checkConfigSize(service, c, tx.keys.WrittenBytes()); err != nil {
		return nil, err
	}

	return changed, tx.keys.Put(keys.Config(service), c.nextDoc())
}

// maxTogether limits the large values of one transaction, in bytes. It leaves space for the other records
// that the transaction writes.
const maxTogether = store.MaxBytes - 64<<10

// CheckConfigSize returns the error that [Tx.SetConfig] returns if the options together are too large.
func CheckConfigSize(service string, options map[string]any) error {
	return checkConfigSize(service, Config{Values: options}, 0)
}

// checkConfigSize returns an error if a service's options do not fit into a transaction that has already
// written the given number of bytes. One record has all options of a service.
func checkConfigSize(service string, c Config, written int) error {
	doc := c.nextDoc()
	data, err := keyspace.Encode(service, doc)
	if err != nil {
		return err
	}
	if written+len(data) <= maxTogether {
		return nil
	}
	// Without values, no option is too large.
	if len(doc.Values) == 0 {
		return nil
	}

	largest := slices.MaxFunc(slices.Sorted(maps.Keys(doc.Values)), func(a, b string) int {
		return cmp.Compare(len(doc.Values[a]), len(doc.Values[b]))
	})
	return fmt.Errorf("cannot set the options of application %q: they have %d bytes, but a transaction can hold only %d: "+
		"the largest is %q with %d; attach large data as a resource, or put them where the unit can fetch them",
		service, len(data), max(0, maxTogether-written), largest, len(doc.Values[largest]))
}

// NoteConfigChange records in the service's history who has changed options in this transaction, with at most
// maxHistoryOptions of their names. It drops the oldest entry if the history is full. The configuration's version
// does not change. NoteConfigChange does nothing if the service's options were never set.
func (tx *Tx) NoteConfigChange(service string, change ConfigChange) error {
	doc, exists, err := keyspace.Load[configDoc](tx.keys, keys.Config(service))
	if err != nil {
		return err
	}
	if !exists {
		return nil
	}

	change.At = change.At.UTC()
	change.Options = change.Options[:min(len(change.Options), maxHistoryOptions)]
	history := append(slices.Clone(doc.History), change)
	doc.History = history[max(0, len(history)-maxConfigHistory):]
	return tx.keys.Put(keys.Config(service), doc)
}

// CheckSecretOption returns nil if the value is empty, or the URI of an existing secret that is granted to
// the service. A service that is new (isNew) needs no grant yet. In all other cases it returns an error.
func (v *View) CheckSecretOption(service, name string, value any, isNew bool) error {
	// nil, which resets the option, counts as empty.
	uri, _ := value.(string)
	if uri == "" {
		return nil
	}

	id, err := secret.ParseID(uri)
	if err != nil || !strings.HasPrefix(uri, secret.Scheme) {
		return charm.Invalidf(
			"option %q is of the type secret: want a secret's URI, as juju add-secret prints it",
			name,
		)
	}

	_, exists, err := v.keys.Get(keys.Secret(id))
	if err != nil {
		return err
	}
	if !exists {
		return refuse(ErrNotFound, "cannot set option %q: secret %q not found", name, id)
	}

	secrets, err := keyspace.LoadOrZero[struct{ Granted []string }](v.keys, keys.ServiceSecrets(service))
	if err != nil {
		return err
	}
	if isNew || slices.Contains(secrets.Granted, id) {
		return nil
	}

	return charm.Invalidf("cannot set option %q: application %q has no permission to read secret %q: juju grant-secret %s %s",
		name, service, id, id, service)
}

// convertOption returns the value in the type of the option. It parses a string, and checks any other value.
func convertOption(c *charm.Config, name string, value any) (any, error) {
	if text, ok := value.(string); ok {
		return c.ParseText(name, text)
	}
	return c.Coerce(name, value)
}

// nextDoc returns the record of c with the next version. It leaves out options that are nil, which have been
// reset to their defaults.
func (c Config) nextDoc() configDoc {
	doc := configDoc{Version: c.Version + 1, Values: map[string]json.RawMessage{}, History: c.History}
	for name, value := range c.Values {
		if value == nil {
			continue
		}

		// Strings, numbers and booleans always encode.
		raw, _ := keyspace.Encode(name, value)
		// Encode writes 2.0 as 2, which decodeOption would decode as an int.
		if f, ok := value.(float64); ok {
			raw = []byte(formatFloat(f))
		}
		doc.Values[name] = raw
	}

	return doc
}

// formatFloat formats f with a point or an exponent, so that decodeOption does not decode an int.
func formatFloat(f float64) string {
	text := strconv.FormatFloat(f, 'g', -1, 64)
	if strings.ContainsAny(text, ".e") {
		return text
	}
	return text + ".0"
}

// decodeOption decodes an option's value. It distinguishes ints from floats, which formatFloat writes with a
// point or an exponent.
func decodeOption(raw string) (any, error) {
	if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
		return n, nil
	}
	var value any
	err := json.Unmarshal([]byte(raw), &value)
	return value, err
}
