package neco

import (
	"errors"
	"slices"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
)

type recoverCmd struct{ reasonFlag }

// Run ends a stopped update, so that a new update can begin. Afterwards it removes the workers' records of the
// ended update in batches, since there may be any number of them. It prints the reason if the new update cannot
// begin yet.
func (recoverCmd) Run(o *operator) error {
	err := o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Recover(s, now, o.audit.Who)
	})
	if errors.Is(err, decide.ErrNotStopped) {
		return console.Hint(err, "to stop the running update: neco stop; to see it: neco status")
	}
	if err != nil {
		return err
	}

	if err := o.open(o.sweepLeftovers); err != nil {
		return err
	}
	s, err := read(o, o.loadStatusSnapshot)
	if err != nil {
		return err
	}
	if s.Current != nil || s.Recovery == nil {
		// No recovery is pending. For example, the new update has already begun.
		return nil
	}

	if a := decide.Next(s, time.Now()); a.Verb == decide.Wait {
		o.note("recovery waits: %s", a.Why)
	}
	return nil
}

// maxSweepBatch is the maximum number of records in one transaction.
const maxSweepBatch = 100

// sweepLeftovers removes the remaining records of updates that have ended, in batches.
func (o *operator) sweepLeftovers(k *keyspace.Space) error {
	for {
		var removals []updater.Change
		err := k.Update(o.ctx, func(tx *keyspace.Tx) error {
			s, err := decide.Load(tx.View, o.parts.Version)
			if err != nil {
				return err
			}
			removals = decide.RemoveLeftovers(s)
			return updater.Apply(tx, slices.Clip(removals[:min(maxSweepBatch, len(removals))]))
		})
		if err != nil {
			return err
		}
		if len(removals) <= maxSweepBatch {
			// That was the last batch.
			return nil
		}
	}
}
