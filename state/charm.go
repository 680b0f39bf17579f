package state

import (
	"fmt"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Charm is one revision of a charm in the environment. It never changes, except that Store can be added. Its
// archive is the blob with the sum SHA256.
type Charm struct {
	URL    charm.URL    `json:"-"`
	SHA256 string       `json:"sha256"` // of the archive, in hex
	Size   int64        `json:"size"`   // of the archive, in bytes
	Meta   charm.Meta   `json:"meta"`
	Config charm.Config `json:"config"`

	Actions map[string]charm.Action `json:"actions,omitempty"`

	Dialect     charm.Dialect `json:"dialect"`
	DialectMark string        `json:"dialect-mark,omitempty"` // the part of the charm that shows the dialect
	Hooks       []string      `json:"hooks,omitempty"`        // the files in hooks/, sorted
	HasDispatch bool          `json:"has-dispatch,omitempty"`

	Store *StoreCharm `json:"store,omitempty"` // the charm in its store; nil if it does not come from one
}

// StoreCharm is a revision of a charm in a store. Usually the revision in the charm's URL is the same number.
// The numbers differ if that URL was already taken.
type StoreCharm struct {
	Store    string   `json:"store"` // StoreCharmhub
	ID       string   `json:"id"`
	Name     string   `json:"name"`
	Revision int      `json:"revision"`
	Channel  string   `json:"channel,omitempty"` // the channel where it was first found; empty if its revision was given instead
	Default  bool     `json:"default,omitempty"` // Channel is the charm's default channel
	Bases    []string `json:"bases,omitempty"`   // ubuntu@22.04
	SHA384   string   `json:"sha384,omitempty"`  // of the archive, in hex
}

// IsRevision reports whether s is the given revision of the charm with the id in the store. It returns false if
// s is nil.
func (s *StoreCharm) IsRevision(id string, revision int) bool {
	return s != nil && s.ID == id && s.Revision == revision
}

// NewCharm returns the record of a charm whose archive PutBlob has stored.
func NewCharm(url charm.URL, c *charm.Charm, sha256 string, size int64) Charm {
	dialect, mark := c.Dialect()
	return Charm{
		URL: url, SHA256: sha256, Size: size, Meta: *c.Meta, Config: *c.Config, Actions: c.Actions,
		Dialect: dialect, DialectMark: mark, Hooks: c.Hooks(), HasDispatch: c.HasDispatch(),
	}
}

// AddCharm adds a charm whose archive is stored. It can be repeated with the same archive, and then adds only
// Store if the existing record lacks it. It returns ErrRevisionTaken if the URL has a different archive,
// ErrNotFound if the archive is not stored, and a different error if the record is too large.
func (tx *Tx) AddCharm(c Charm) error {
	key := keys.Charm(c.URL.String())
	old, exists, err := keyspace.Load[Charm](tx.keys, key)
	if err != nil {
		return err
	}

	if exists {
		if old.SHA256 != c.SHA256 {
			return refuse(ErrRevisionTaken, "charm %q already exists with different content", c.URL)
		}
		if old.Store != nil || c.Store == nil {
			return nil
		}

		// The charm was first added from a local directory, and now comes from a store.
		old.Store = c.Store
		return tx.keys.Put(key, old)
	}

	// Only the error matters here, not the size: the record must fit into a transaction.
	if _, err := c.checkSize(); err != nil {
		return err
	}
	if err := tx.keys.ReferToBlob(c.SHA256); err != nil {
		return fmt.Errorf("cannot add charm %q: %w", c.URL, err)
	}

	return tx.keys.Put(key, c)
}

// CheckDeployment returns an error if one transaction cannot hold both the charm and the options of its
// service.
func CheckDeployment(c Charm, service string, options map[string]any) error {
	n, err := c.checkSize()
	if err != nil {
		return err
	}
	return checkConfigSize(service, Config{Values: options}, n)
}

// checkSize returns the size of the charm's record in bytes, or an error if the record is too large.
func (c Charm) checkSize() (int, error) {
	data, err := keyspace.Encode(c.URL.String(), c)
	if err != nil {
		return 0, err
	}
	if len(data) > maxTogether {
		return 0, fmt.Errorf("cannot add charm %q: its metadata, options and actions have %d bytes together, but a "+
			"transaction can hold only %d: shorten their descriptions and defaults", c.URL, len(data), maxTogether)
	}

	return len(data), nil
}

// Charm reads a charm by its URL. It returns ErrNotFound if there is no such charm.
func (v *View) Charm(url string) (Charm, error) {
	c, err := keyspace.LoadExisting[Charm](v.keys, keys.Charm(url), "charm %q not found", url)
	if err != nil {
		return Charm{}, err
	}
	c.URL, err = charm.ParseURL(url)
	return c, err
}

// StoreCharm finds the charm that has the given id and revision in its store. It returns ErrNotFound if the
// environment does not have that charm.
func (v *View) StoreCharm(id string, revision int) (Charm, error) {
	all, err := v.Charms()
	if err != nil {
		return Charm{}, err
	}

	for _, c := range all {
		// A charm that does not come from a store has no Store. IsRevision then returns false.
		if c.Store.IsRevision(id, revision) {
			return c, nil
		}
	}
	return Charm{}, refuse(ErrNotFound, "the model has no revision %d of the charm with the id %q", revision, id)
}

// Charms reads all charms, sorted by URL.
func (v *View) Charms() ([]Charm, error) {
	kvs, err := v.keys.List(keys.Charms)
	if err != nil {
		return nil, err
	}

	charms := make([]Charm, len(kvs))
	for i, kv := range kvs {
		if charms[i], err = keyspace.Decode[Charm](kv); err != nil {
			return nil, err
		}
		if charms[i].URL, err = charm.ParseURL(kv.Key[len(keys.Charms):]); err != nil {
			return nil, err
		}
	}

	return charms, nil
}
