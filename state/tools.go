package state

import (
	"fmt"
	"path"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Tools is a bijou binary that agents can be upgraded to. Agents on other hosts download it from the store.
// Its content is the blob with the sum SHA256.
type Tools struct {
	Name string `json:"-"` // VERSION-SHA8, which is also the name of the binary's directory

	SHA256 string    `json:"sha256"` // in hex
	Size   int64     `json:"size"`   // in bytes
	Added  time.Time `json:"added"`
}

// AddTools records a binary that PutFile has stored. It can be repeated. A sweep removes the tools once
// neither the environment nor a machine uses them.
func (tx *Tx) AddTools(t Tools) error {
	isFileName := path.Base(t.Name) == t.Name
	hasSum := len(t.SHA256) >= 8 && strings.HasSuffix(t.Name, "-"+t.SHA256[:8])
	if !isFileName || !hasSum {
		return fmt.Errorf("cannot store the binary %q: the name must be VERSION-SHA8, with the first 8 digits of %s", t.Name, t.SHA256)
	}
	if err := tx.keys.ReferToBlob(t.SHA256); err != nil {
		return fmt.Errorf("cannot store the binary %q: %w", t.Name, err)
	}
	// Put keeps the unknown fields of a record only if the transaction has read the record.
	if _, _, err := tx.keys.Get(keys.Tool(t.Name)); err != nil {
		return err
	}

	return tx.keys.Put(keys.Tool(t.Name), t)
}

// Tools reads the tools called name. It returns ErrNotFound if they do not exist.
func (v *View) Tools(name string) (Tools, error) {
	t, err := keyspace.LoadExisting[Tools](v.keys, keys.Tool(name), "the model has no binary %q", name)
	t.Name = name
	return t, err
}

// AllTools reads all tools, sorted by name.
func (v *View) AllTools() ([]Tools, error) {
	return keyspace.LoadChildren(v.keys, keys.Tools, func(t *Tools, name string) { t.Name = name })
}
