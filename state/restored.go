package state

import (
	"fmt"
	"time"
)

// Restored marks a unit whose records come from a backup, until an operator has seen
// that its folder is as they say: a folder may have come further since, or not as far.
type Restored struct {
	Backup time.Time `json:"backup"` // when that was made
}

// String is what status says.
func (r Restored) String() string {
	return fmt.Sprintf("restored from the backup of %s: what its hooks did since is not in the state; look at it, then juju resolved", r.Backup.Format(time.RFC3339))
}

// Restored reads the mark; ok is false if there is none (any more).
func (v *View) Restored(unit string) (r Restored, ok bool, err error) {
	return load[Restored](v, restoredKey(unit))
}
