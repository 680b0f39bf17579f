package state

import (
	"cmp"
	"slices"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// HookRun is one hook that a unit has run, as `juju hook-history` shows it. Hooks
// that the charm does not have are not recorded.
type HookRun struct {
	Seq      int64     `json:"seq"`          // counts the unit's
	ID       string    `json:"id,omitempty"` // of the run, as the unit's folder notes it
	Hook     string    `json:"hook"`
	Relation string    `json:"relation,omitempty"` // "relation-3"; empty for a unit's hook
	Remote   string    `json:"remote,omitempty"`   // the unit that caused it
	Started  time.Time `json:"started"`
	Ended    time.Time `json:"ended"`
	Exit     int       `json:"exit"`              // its exit code, or -1 if it had none
	Failure  string    `json:"failure,omitempty"` // why it failed
	Changes  []string  `json:"changes,omitempty"` // settings that it wrote, as sanitize.HideSecrets reads them
	More     int       `json:"more,omitempty"`    // further changes, not listed
}

const (
	// maxHookRuns is how many hooks of a unit are remembered.
	maxHookRuns = 50
	// maxHookRunChanges is how many changes of each.
	maxHookRunChanges = 20
)

// AddHookRun records a hook that has ended, in place of the oldest. Nothing is read: Seq
// is the caller's, who alone writes for that unit.
func (tx *Tx) AddHookRun(unit string, r HookRun) error {
	if n := len(r.Changes); n > maxHookRunChanges {
		r.Changes, r.More = r.Changes[:maxHookRunChanges], n-maxHookRunChanges
	}
	return tx.keys.Put(keys.HookRun(unit, int(r.Seq%maxHookRuns)), r)
}

// HookRuns lists the last hooks of a unit, the oldest first.
func (v *View) HookRuns(unit string) ([]HookRun, error) {
	kvs, err := v.keys.List(keys.UnitHistory(unit))
	if err != nil {
		return nil, err
	}
	runs := make([]HookRun, len(kvs))
	for i, kv := range kvs {
		if runs[i], err = keyspace.Decode[HookRun](kv); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(runs, func(a, b HookRun) int { return cmp.Compare(a.Seq, b.Seq) })
	return runs, nil
}
