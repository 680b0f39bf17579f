package state

import (
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// FormatVersion is the one that this code reads and writes. An older one would be
// converted on Open; there is none yet.
const FormatVersion = 1

// FormatRecord says what wrote a store.
type FormatRecord struct {
	Format int `json:"format"`
}

// CheckFormat refuses what this code would misread, and stores that an environment has
// left, or is only partly in.
func CheckFormat(v *View) error {
	if err := v.checkNotMoved(); err != nil {
		return err
	}
	doc, ok, err := keyspace.Load[FormatRecord](v.keys, keys.Format)
	if err == nil && !ok {
		err = v.checkNotPartial()
	}
	switch {
	case err != nil:
		return err
	case !ok:
		return refuse(ErrFormat, "it holds no bijou environment")
	case doc.Format != FormatVersion:
		return refuse(ErrFormat, "its format is %d, and this bijou knows %d only: use the bijou that wrote it, or a newer one", doc.Format, FormatVersion)
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
	to, err := keyspace.Decode[MovedRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrMoved, "the environment has moved to %q", to.To)
}

// checkNotPartial returns ErrFormat if a migration or a restoration to this store was not finished.
func (v *View) checkNotPartial() error {
	left, ok, err := keyspace.Load[PartialCopy](v.keys, keys.PartialCopy)
	if err != nil || !ok {
		return err
	}
	return refuse(ErrFormat, "it holds a part only of what is to be copied from %q", left.From)
}

// PartialCopy is written before anything is copied to a store, and goes when the old
// store is done with. As long as there is no format beside it, the copy is not whole.
type PartialCopy struct {
	Environment string    `json:"environment"` // its uuid
	From        string    `json:"from"`
	Keep        bool      `json:"keep,omitempty"`
	Since       time.Time `json:"since"`
}

// MovedRecord is left in the store that an environment has left.
type MovedRecord struct {
	To    string    `json:"to"`
	Since time.Time `json:"since"`
}

// CopyLockRecord names who copies an environment just now.
type CopyLockRecord struct {
	keyspace.Presence
	To string `json:"to"`
}

// guards keep what works on an environment away from one that has moved to another store,
// and agents and leaders from beginning while it is copied.
func guards() []keyspace.Guard {
	return []keyspace.Guard{
		{Key: keys.Moved, Explain: explainMoved},
		{Key: keys.CopyLock, Leased: true, Explain: explainCopyLock},
	}
}

func explainCopyLock(kv keyspace.KeyValue) error {
	by, err := keyspace.Decode[CopyLockRecord](kv)
	if err != nil {
		return err
	}
	return refuse(ErrRunning, "the environment is being copied to %q, by process %d on host %q", by.To, by.PID, by.Host)
}
