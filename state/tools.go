package state

import (
	"fmt"
	"path"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Tools is a binary that agents can be told to run, for machines that share no
// folder with whoever told them. Its content is the blob SHA256.
type Tools struct {
	Name string `json:"-"` // VERSION-SHA8, the folder that it lies in

	SHA256 string    `json:"sha256"` // in hex
	Size   int64     `json:"size"`   // in bytes
	Added  time.Time `json:"added"`
}

// AddTools records a binary that PutFile has stored. It may be repeated. A sweep removes tools once no
// machine runs them.
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
	t, err := keyspace.LoadExisting[Tools](v.keys, keys.Tool(name), "the model has no tools %q", name)
	t.Name = name
	return t, err
}

// AllTools reads all tools that are kept.
func (v *View) AllTools() ([]Tools, error) {
	return keyspace.LoadChildren(v.keys, keys.Tools, func(t *Tools, name string) { t.Name = name })
}
