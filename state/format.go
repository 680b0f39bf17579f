package state

import (
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// formatVersion is the one that this code reads and writes. An older one would be
// converted on Open; there is none yet.
const formatVersion = 1

type formatDoc struct {
	Format int `json:"format"`
}

// checkFormat refuses what this code would misread, and stores that an environment has
// left, or is only partly in.
func checkFormat(v *View) error {
	if err := v.checkNotMoved(); err != nil {
		return err
	}
	doc, ok, err := keyspace.Load[formatDoc](v.keys, keys.Format)
	if err == nil && !ok {
		err = v.checkNotPartial()
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(ErrFormat, "it holds no bijou environment")
	case doc.Format != formatVersion:
		return refuse(ErrFormat, "its format is %d, and this bijou knows %d only: use the bijou that wrote it, or a newer one", doc.Format, formatVersion)
	}
	return nil
}

func (v *View) checkNotMoved() error {
	kv, err := v.keys.GetKV(keys.Moved)
	if err != nil || kv.Revision == 0 {
		return err
	}
	return explainMoved(kv)
}

func explainMoved(kv keyspace.KeyValue) error {
	to, err := keyspace.Decode[movedRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrMoved, "the environment has moved to %q", to.To)
}

// checkNotPartial returns ErrFormat if a migration or a restoration to this store was
// not finished.
func (v *View) checkNotPartial() error {
	left, ok, err := keyspace.Load[partialCopy](v.keys, keys.PartialCopy)
	if err != nil || !ok {
		return err
	}
	return refuse(ErrFormat, "it holds a part only of what is to be copied from %q", left.From)
}

// partialCopy is written before anything is copied to a store, and goes when the old
// store is done with. As long as there is no format beside it, the copy is not whole.
type partialCopy struct {
	Environment string    `json:"environment"` // its uuid
	From        string    `json:"from"`
	Keep        bool      `json:"keep,omitempty"`
	Since       time.Time `json:"since"`
}

// movedRecord is left in the store that an environment has left.
type movedRecord struct {
	To    string    `json:"to"`
	Since time.Time `json:"since"`
}
