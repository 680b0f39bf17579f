package state

import (
	"fmt"
	"path"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Charm is one revision of a charm in the environment. It never changes; its
// archive is the blob SHA256.
type Charm struct {
	URL    charm.URL    `json:"-"`
	SHA256 string       `json:"sha256"` // of the archive, in hex
	Size   int64        `json:"size"`   // of the archive, in bytes
	Meta   charm.Meta   `json:"meta"`
	Config charm.Config `json:"config"`

	Actions map[string]charm.Action `json:"actions,omitempty"`

	Dialect     charm.Dialect `json:"dialect"`
	DialectMark string        `json:"dialect-mark,omitempty"` // what of the charm says so
	Hooks       []string      `json:"hooks,omitempty"`        // the files in hooks/, sorted
	HasDispatch bool          `json:"has-dispatch,omitempty"`
}

// NewCharm returns the record of a charm whose archive PutBlob has stored.
func NewCharm(url charm.URL, c *charm.Charm, sha256 string, size int64) Charm {
	dialect, mark := c.Dialect()
	return Charm{
		URL: url, SHA256: sha256, Size: size, Meta: *c.Meta, Config: *c.Config, Actions: c.Actions,
		Dialect: dialect, DialectMark: mark, Hooks: c.Hooks(), HasDispatch: c.HasDispatch(),
	}
}

// AddCharm adds a charm whose archive is stored. Adding the same archive under
// the same URL again is no error; another archive there is ErrRevisionTaken.
func (tx *Tx) AddCharm(c Charm) error {
	key := keys.Charm(c.URL.String())
	old, ok, err := keyspace.Load[Charm](tx.keys, key)
	if err != nil || ok && old.SHA256 == c.SHA256 {
		return err
	}
	if ok {
		return refuse(ErrRevisionTaken, "charm %q exists already with other content", c.URL)
	}
	if err := tx.keys.ReferToBlob(c.SHA256); err != nil {
		return fmt.Errorf("cannot add charm %q: %w", c.URL, err)
	}
	return tx.keys.Put(key, c)
}

// Charm reads a charm by its URL. ErrNotFound.
func (v *View) Charm(url string) (Charm, error) {
	c, err := keyspace.LoadExisting[Charm](v.keys, keys.Charm(url), "charm %q not found", url)
	if err != nil {
		return Charm{}, err
	}
	c.URL, err = charm.ParseURL(url)
	return c, err
}

// Charms reads all charms, by URL.
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

// Tools is a binary that agents can be told to run, for machines that share no
// folder with whoever told them. Its content is the blob SHA256.
type Tools struct {
	Name string `json:"-"` // VERSION-SHA8, the folder that it lies in

	SHA256 string    `json:"sha256"` // in hex
	Size   int64     `json:"size"`   // in bytes
	Added  time.Time `json:"added"`
}

// AddTools keeps a binary that PutFile has stored. It is no error if it is there.
// What no machine runs any more is swept.
func (tx *Tx) AddTools(t Tools) error {
	if path.Base(t.Name) != t.Name || len(t.SHA256) < 8 || !strings.HasSuffix(t.Name, "-"+t.SHA256[:8]) {
		return fmt.Errorf("cannot keep tools %q: want VERSION-SHA8, of the sum %s", t.Name, t.SHA256)
	}
	if err := tx.keys.ReferToBlob(t.SHA256); err != nil {
		return fmt.Errorf("cannot keep tools %q: %w", t.Name, err)
	}
	if _, _, err := tx.keys.Get(keys.Tool(t.Name)); err != nil { // Put keeps what this binary does not know
		return err
	}
	return tx.keys.Put(keys.Tool(t.Name), t)
}

// Tools reads the tools of that name. ErrNotFound.
func (v *View) Tools(name string) (Tools, error) {
	t, err := keyspace.LoadExisting[Tools](v.keys, keys.Tool(name), "the environment keeps no tools %q", name)
	t.Name = name
	return t, err
}

// AllTools reads all tools that are kept.
func (v *View) AllTools() ([]Tools, error) {
	return keyspace.LoadChildren(v.keys, keys.Tools, func(t *Tools, name string) { t.Name = name })
}
