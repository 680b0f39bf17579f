package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bijou/state"
	"bijou/state/logs"
)

// sweepState is the verb of the job that removes data from the state to which nothing refers. Plan never
// returns this verb.
const sweepState Verb = "sweep"

// newJob returns a job that logs and carries out the action.
func (l *leader) newJob(a Action) job {
	return job{a, func(ctx context.Context) error {
		log := l.Log.With("action", a.Verb, "machine", a.Machine, "instance", a.Instance)
		log.Info("provisioner acts")
		err := l.runAction(ctx, a)
		if err != nil && ctx.Err() == nil {
			log.Warn("provisioner's action failed", "error", err)
		}
		return err
	}}
}

// runAction carries out the action. It panics if the action's verb is one that Plan never returns. Jobs call it.
func (l *leader) runAction(ctx context.Context, a Action) error {
	switch a.Verb {
	case Start:
		return l.startInstance(ctx, a.Machine)
	case Record:
		const epoch = 0 // nothing was started, so the agent keeps its claim
		return l.recordInstance(ctx, a, epoch)
	case Stop:
		return l.stopInstance(ctx, a)
	case Remove:
		return l.removeMachine(ctx, a)
	}

	panic("internal error: unknown action " + string(a.Verb))
}

// recordInstance records that the instance belongs to the machine. It also frees the machine's claim for the
// instance's agent, under the conditions of [state.Tx.FreeClaim]. epoch is the claim's epoch when the start
// began; 0 never frees the claim. If the machine has been removed in the meantime, recordInstance records
// nothing and returns nil. The next plan then decides about the instance.
func (l *leader) recordInstance(ctx context.Context, a Action, epoch int64) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		if err := tx.FreeClaim(a.Machine, a.Instance, epoch); err != nil {
			return err
		}
		return tx.SetStarted(a.Machine, a.Instance, state.Addresses{Private: a.Private, Public: a.Public})
	})
}

// stopInstance stops an instance, and records the result for the action's machine, if that machine is dead: a failed
// stop, or a successful stop of the instance that the machine's record names. It does nothing if a living machine has
// the instance: since the plan was made, the provider can have returned the instance for a start. It returns an error,
// and stops nothing, if this process is no longer the leader.
func (l *leader) stopInstance(ctx context.Context, a Action) error {
	if l.owners.isTaken(a.Instance) {
		return nil
	}
	// An empty commit fails if this process is no longer the leader.
	if err := l.update(ctx, func(*state.Tx) error { return nil }); err != nil {
		return err
	}

	stopCtx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()

	err := l.Provider.Stop(stopCtx, a.Instance)
	if ctx.Err() != nil {
		// The provisioner stops or has lost the leadership, so it cannot record the result. This is an error even
		// if the instance has stopped.
		return cmp.Or(err, ctx.Err())
	}
	if err != nil {
		if stopCtx.Err() != nil {
			err = fmt.Errorf("the provider has not stopped the instance within %s: %w", stopTimeout, err)
		}
		recordErr := l.recordStopFailure(ctx, a, err)
		return errors.Join(err, recordErr)
	}

	// The instance names no machine, so there is no record to update.
	if a.Machine == "" {
		return nil
	}
	return l.recorder.record(ctx, func(tx *state.Tx) error { return tx.SetStopped(a.Machine, a.Instance) })
}

// recordStopFailure records for a dead machine why its instance did not stop. It records nothing for other
// machines, since they do not wait for the end of the instance.
func (l *leader) recordStopFailure(ctx context.Context, a Action, failure error) error {
	message := fmt.Sprintf("cannot stop instance %q: %v", a.Instance, failure)

	return l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(a.Machine)
		if err != nil {
			return err
		}
		if m.Life != state.Dead {
			return nil
		}
		return tx.SetStopFailure(a.Machine, message)
	})
}

// removeMachine removes a machine from the state. It returns nil if the machine has already been removed, or
// has units again.
func (l *leader) removeMachine(ctx context.Context, a Action) error {
	// The action names the instances that the harvest mode leaves alone.
	if a.Instance != "" {
		l.Log.Info("a machine's instance keeps running: "+state.HarvestMode,
			"machine", a.Machine, "instance", a.Instance)
	}

	// Remove the machine's storage records first. The recorder's transactions cover many machines, and have
	// no space for many storage records. state.ErrInUse can be ignored here, since RemoveMachine checks again.
	err := state.TrimMachineStorage(ctx, l.update, a.Machine)
	if err != nil && !errors.Is(err, state.ErrInUse) {
		return state.IgnoreNotFound(err)
	}

	return l.recorder.record(ctx, func(tx *state.Tx) error {
		// If the machine has units again, the next plan decides.
		if err := tx.RemoveMachine(a.Machine); err != nil && !errors.Is(err, state.ErrInUse) {
			return err
		}

		return nil
	})
}

// reportProblems records the problems and the time of the next retry for juju status, unless s shows that the
// record is up to date. If there are no problems, it clears the record. It drops problems beyond
// state.MaxTroubleMessages.
//
// If the problems have changed since this leader's last call, it logs them in this process's log. If it has also
// changed the record, it then logs them, or their end, in the environment's log. There it also logs the end of
// problems that only a previous leader has reported.
func (l *leader) reportProblems(ctx context.Context, s snapshot, problems []string) error {
	problems = problems[:min(len(problems), state.MaxTroubleMessages)]
	changed := !slices.Equal(problems, l.problems)
	if changed {
		for _, problem := range problems {
			l.Log.Warn("provisioner has a problem", "error", problem)
		}
		l.problems = problems
	}

	nextRetry := l.listFailure.due
	// A previous leader may have reported the same problems. This leader then leaves the environment's log alone.
	if slices.Equal(problems, s.trouble.Messages) && nextRetry.Equal(s.trouble.NextRetry) {
		return nil
	}

	err := l.update(ctx, func(tx *state.Tx) error {
		return tx.SetProvisionerTrouble(problems, l.Now(), nextRetry)
	})
	if err != nil {
		return err
	}
	// Problems that end under a new leader were reported by a previous one.
	haveEnded := len(problems) == 0 && len(s.trouble.Messages) > 0
	if !changed && !haveEnded {
		return nil
	}

	var lines []logs.Line
	for _, problem := range problems {
		lines = append(lines, logs.Line{Time: l.Now(), Level: "WARNING", Message: "has a problem: " + problem})
	}
	if len(problems) == 0 {
		lines = []logs.Line{{Time: l.Now(), Level: "INFO", Message: "continues"}}
	}
	return logs.Append(ctx, l.State, provisionerName, lines)
}

// maxBatch is the maximum number of entries in one transaction.
const maxBatch = 64

// recorder writes the results of jobs to the state. It writes simultaneous results in one transaction.
type recorder struct {
	update  state.Updater // fenced by the leader's key
	entries chan entry    // buffered, so that a batch collects while another one is written
}

// entry is one job's write.
type entry struct {
	write func(tx *state.Tx) error
	done  chan error // buffered, since the job may no longer be waiting
}

// record commits a write, and blocks until the commit is done or ctx is done. In the second case the write may
// still be committed. record returns nil if the write fails with state.ErrNotFound, since the machine has then
// been removed. It is safe for concurrent use.
func (r *recorder) record(ctx context.Context, write func(tx *state.Tx) error) error {
	e := entry{write, make(chan error, 1)}
	select {
	case r.entries <- e:
	case <-ctx.Done():
		return ctx.Err()
	}

	select {
	case err := <-e.done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run writes entries in batches, until ctx is done.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case first := <-r.entries:
			r.writeBatch(ctx, r.collectBatch(first))
		case <-ctx.Done():
			return
		}
	}
}

// collectBatch returns the first entry and the waiting ones, up to maxBatch in all.
func (r *recorder) collectBatch(first entry) []entry {
	batch := []entry{first}
	for len(batch) < maxBatch {
		select {
		case e := <-r.entries:
			batch = append(batch, e)
		default:
			return batch
		}
	}

	return batch
}

// writeBatch commits a batch of entries. If that fails, it commits each entry separately, so that one bad
// entry does not block the others.
func (r *recorder) writeBatch(ctx context.Context, batch []entry) {
	err := r.commit(ctx, batch)
	for _, e := range batch {
		if err != nil && len(batch) > 1 {
			e.done <- r.commit(ctx, []entry{e})
			continue
		}
		e.done <- err
	}
}

// commit writes a batch in one transaction. It ignores entries about machines that have been removed.
func (r *recorder) commit(ctx context.Context, batch []entry) error {
	return r.update(ctx, func(tx *state.Tx) error {
		for _, e := range batch {
			if err := e.write(tx); err != nil && !errors.Is(err, state.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}
