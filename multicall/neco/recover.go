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

// Run clears a stopped update away. It removes its workers' records in batches, since they have no bound
// and no longer count.
func (recoverCmd) Run(o *operator) error {
	err := o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Recover(s, now, o.audit.Who)
	})
	if errors.Is(err, decide.ErrNotStopped) {
		return console.Hint(err, "neco stop stops the update that runs; neco status shows it")
	}
	if err != nil {
		return err
	}

	if err := o.open(o.sweepLeftovers); err != nil {
		return err
	}
	s, err := read(o, o.loadStatusSnapshot)
	if err != nil || s.Current != nil || s.Recovery == nil {
		return err
	}

	if a := decide.Next(s, time.Now()); a.Verb == decide.Wait {
		o.note("recovery waits: %s", a.Why)
	}
	return nil
}

// maxSweepBatch is the number of records in one transaction.
const maxSweepBatch = 100

// sweepLeftovers removes all that is left of updates that have ended, a batch at a time.
func (o *operator) sweepLeftovers(k *keyspace.Space) error {
	for {
		var left []updater.Change
		err := k.Update(o.ctx, func(tx *keyspace.Tx) error {
			s, err := decide.Load(tx.View, o.parts.Version)
			if err != nil {
				return err
			}
			left = decide.RemoveLeftovers(s)
			return updater.Apply(tx, slices.Clip(left[:min(maxSweepBatch, len(left))]))
		})
		if err != nil || len(left) <= maxSweepBatch {
			return err
		}
	}
}
