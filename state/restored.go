package state

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Restored marks a unit whose records come from a backup. The unit's directory can be older or newer than the
// backup. The unit does nothing until its agent has found that the directory agrees with the records, or an
// operator has accepted the difference.
type Restored struct {
	Backup time.Time `json:"backup"` // when the backup was made
	// Differs is the difference that the unit's agent has found. It is empty if the agent has not compared
	// the directory yet.
	Differs string `json:"differs,omitempty"`
	// Storage has the ids of the unit's storages whose directories are missing. If an operator accepts that,
	// the agent creates empty directories.
	Storage []string `json:"storage,omitempty"`
	// Adopted makes the agent trust the unit's directory, and check only that the directories of its storage
	// exist.
	Adopted bool `json:"adopted,omitempty"`
	// Accepted reports whether an operator accepted any difference before the agent compared the directory.
	Accepted bool `json:"accepted,omitempty"`
}

// String returns the message that status shows.
func (r Restored) String() string {
	finding := "its agent has not yet compared its directory"
	if r.Differs != "" {
		finding = r.Differs + "; check the directory, then: juju resolved"
	}
	if len(r.Storage) > 0 {
		finding += ", which creates storage " + strings.Join(r.Storage, ", ") + " again, empty"
	}
	return fmt.Sprintf("restored from the backup of %s: %s", r.Backup.Format(time.RFC3339), finding)
}

// Restored reads a unit's mark; ok is false if the unit does not have one.
func (v *View) Restored(unit string) (r Restored, ok bool, err error) {
	return keyspace.Load[Restored](v.keys, keys.Restored(unit))
}

// SetRestoredDiffers records how the directory of a restored unit differs from the unit's records, and the ids of
// the storages whose directories are missing. If there are such storages, how must not be empty. If how is empty,
// there is no difference, and the unit's mark is removed. If there is a difference that an operator has accepted in
// advance, the mark is also removed. The unit's agent then deploys the charm again, and creates the missing storage
// again.
// SetRestoredDiffers does nothing for a unit without a mark.
func (tx *Tx) SetRestoredDiffers(unit, how string, missing []string) error {
	r, ok, err := tx.Restored(unit)
	if err != nil {
		return err
	}
	if !ok {
		return nil
	}

	r.Differs = how
	r.Storage = missing
	// The operator has accepted any difference before the agent could compare the directory.
	if r.Accepted && how != "" {
		return tx.endRestored(unit, r)
	}

	return tx.keys.PutOrRemove(keys.Restored(unit), r, how != "")
}

// AcceptRestored records that an operator accepts a restored unit as it is; marked reports whether the unit
// had a mark. If the unit's agent has found a difference, AcceptRestored removes the mark, and the agent deploys the
// charm again and creates the missing storage again. Otherwise the agent has not compared the directory yet, and the
// mark stays until it has: only the agent knows whether the charm or storage is missing. AcceptRestored returns
// ErrAlreadyResolved if the unit has a mark that an operator has accepted before.
func (tx *Tx) AcceptRestored(unit string) (marked bool, err error) {
	r, ok, err := tx.Restored(unit)
	if err != nil {
		return false, err
	}
	if !ok {
		return false, nil
	}
	if r.Differs != "" {
		return true, tx.endRestored(unit, r)
	}
	if r.Accepted {
		return true, refuse(ErrAlreadyResolved, "unit %q is already marked as resolved", unit)
	}

	r.Accepted = true
	return true, tx.keys.Put(keys.Restored(unit), r)
}

// endRestored removes a unit's mark, so that the unit continues from its records. Its agent deploys the charm
// again if it has deployed one before, and creates the storage that r lists as missing again.
func (tx *Tx) endRestored(unit string, r Restored) error {
	tx.keys.Remove(keys.Restored(unit))
	all, err := tx.OwnStorages(unit)
	if err != nil {
		return err
	}

	for _, s := range all {
		if !slices.Contains(r.Storage, s.ID) {
			continue
		}
		if err := tx.ReattachStorage(s.ID); err != nil {
			return err
		}
	}

	w, err := tx.Workflow(unit)
	if err != nil {
		return err
	}
	if w.Charm == "" {
		return nil // the unit has not deployed a charm
	}

	// The agent then treats the deployment of the charm as not completed, and repeats it.
	w.Deploying = w.Charm
	return tx.PutWorkflow(unit, w)
}
