package state

import (
	"fmt"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Restored marks a unit whose records come from a backup, until its folder is known to
// agree with them: a folder may have come further since, or not as far.
type Restored struct {
	Backup time.Time `json:"backup"` // when that was made
	// Differs says what its agent has found to be otherwise; empty: it has not looked
	// yet. The unit waits as long as the mark is there.
	Differs string `json:"differs,omitempty"`
}

// String returns the message in the status.
func (r Restored) String() string {
	what := "its agent has not yet compared its folder"
	if r.Differs != "" {
		what = r.Differs + "; look at it, then juju resolved"
	}
	return fmt.Sprintf("restored from the backup of %s: %s", r.Backup.Format(time.RFC3339), what)
}

// Restored reads a unit's mark; ok is false if there is none (any more).
func (v *View) Restored(unit string) (r Restored, ok bool, err error) {
	return keyspace.Load[Restored](v.keys, keys.Restored(unit))
}

// SetRestoredDiffers records how a restored unit's folder differs from its records;
// empty: it does not, and the mark goes. Without a mark it changes nothing.
func (tx *Tx) SetRestoredDiffers(unit, how string) error {
	r, ok, err := tx.Restored(unit)
	if err != nil || !ok {
		return err
	}
	if how == "" {
		tx.keys.Remove(keys.Restored(unit))
		return nil
	}
	r.Differs = how
	return tx.keys.Put(keys.Restored(unit), r)
}

// acceptRestored takes the unit's mark away, since an operator has looked: the unit goes
// on from its records, with its charm put in place again.
func (tx *Tx) acceptRestored(unit string) (was bool, err error) {
	r, ok, err := tx.Restored(unit)
	if err != nil || !ok {
		return false, err
	}
	tx.keys.Remove(keys.Restored(unit))
	w, err := tx.Workflow(unit)
	if err != nil || r.Differs == "" || w.Charm == "" {
		return true, err
	}
	w.Deploying = w.Charm
	return true, tx.PutWorkflow(unit, w)
}
