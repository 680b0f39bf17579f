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

// sweepState is the one job that is not Plan's: it removes what nothing in state refers to any more.
const sweepState Verb = "sweep"

// newJob returns the job that carries out the action, and logs it.
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

// runAction carries out the action. Jobs call it.
func (l *leader) runAction(ctx context.Context, a Action) error {
	switch a.Verb {
	case Start:
		return l.startInstance(ctx, a.Machine)
	case Record:
		return l.recordInstance(ctx, a, 0)
	case Stop:
		return l.stopInstance(ctx, a)
	case Remove:
		return l.removeMachine(ctx, a)
	}

	panic("internal error: unknown action " + string(a.Verb))
}

// recordInstance records that the instance is the machine's. The instance may claim the machine in the
// place of a former one, which held it at that epoch. If the machine is gone meanwhile, the next plan stops
// the instance.
func (l *leader) recordInstance(ctx context.Context, a Action, epoch int64) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		if err := tx.FreeClaim(a.Machine, a.Instance, epoch); err != nil {
			return err
		}
		return tx.SetStarted(a.Machine, a.Instance, state.Addresses{Private: a.Private, Public: a.Public})
	})
}

// stopInstance stops an instance, if this process still leads. It leaves alone an instance that a start has
// returned meanwhile, for any machine.
func (l *leader) stopInstance(ctx context.Context, a Action) error {
	if l.owners.isTaken(a.Instance) {
		return nil
	}
	if err := l.update(ctx, func(*state.Tx) error { return nil }); err != nil {
		return err // it leads no more
	}

	asked, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()

	err := l.Provider.Stop(asked, a.Instance)
	switch {
	case ctx.Err() != nil:
		return cmp.Or(err, ctx.Err())
	case err == nil && a.Machine == "":
		return nil
	case err == nil:
		return l.recorder.record(ctx, func(tx *state.Tx) error { return tx.SetStopped(a.Machine, a.Instance) })
	}

	if asked.Err() != nil {
		err = fmt.Errorf("the provider has not ended it within %s: %w", stopTimeout, err)
	}

	failure := fmt.Sprintf("cannot stop instance %q: %v", a.Instance, err)
	unnoted := l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(a.Machine)
		if err != nil || m.Life != state.Dead {
			return err
		}
		return tx.SetStopFailure(a.Machine, failure)
	})

	return errors.Join(err, unnoted)
}

// removeMachine removes the record of a machine. It does nothing if the machine has units again.
func (l *leader) removeMachine(ctx context.Context, a Action) error {
	if a.Instance != "" {
		l.Log.Info("a machine's instance is left to run: "+state.HarvestMode,
			"machine", a.Machine, "instance", a.Instance)
	}

	return l.recorder.record(ctx, func(tx *state.Tx) error {
		if err := tx.RemoveMachine(a.Machine); err != nil && !errors.Is(err, state.ErrInUse) {
			return err
		}

		return nil // it has units again: the next plan knows
	})
}

// reportProblems logs the problems, and records them for juju status. No problems clear the record.
func (l *leader) reportProblems(ctx context.Context, s snapshot, problems []string) error {
	problems = problems[:min(len(problems), state.MaxTroubleMessages)]
	changed := !slices.Equal(problems, l.problems)
	if changed {
		for _, w := range problems {
			l.Log.Warn("provisioner is in trouble", "error", w)
		}
		l.problems = problems
	}
	if slices.Equal(problems, s.trouble.Messages) && l.listFailure.due.Equal(s.trouble.NextRetry) {
		return nil
	}

	err := l.update(ctx, func(tx *state.Tx) error {
		return tx.SetProvisionerTrouble(problems, l.Now(), l.listFailure.due)
	})
	if err != nil || !changed {
		return err
	}

	var lines []logs.Line
	for _, w := range problems {
		lines = append(lines, logs.Line{Time: l.Now(), Level: "WARNING", Message: "is in trouble: " + w})
	}
	if len(problems) == 0 {
		lines = []logs.Line{{Time: l.Now(), Level: "INFO", Message: "goes on again"}}
	}
	return logs.Append(ctx, l.State, provisionerName, lines)
}

// maxBatch limits how many machines one transaction records.
const maxBatch = 64

// recorder writes what jobs have found out. What several have at the same time is one transaction.
type recorder struct {
	update  state.Updater // fenced by the leader's key
	entries chan entry    // with room for a batch, so that it fills while one is written
}

// entry is one job's write.
type entry struct {
	write func(tx *state.Tx) error
	done  chan error // buffered: whoever waited may have gone
}

// record blocks until it is written, or ctx is done. A machine that is gone meanwhile is no error.
// It may be called from several goroutines.
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

// run writes entries as they come, in batches, until ctx is done.
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

// collectBatch returns the first entry and those that wait, at most maxBatch.
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

// writeBatch commits a batch of entries. If that fails it commits each entry by itself, so that one bad
// entry does not hold up the others.
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

// commit writes a batch in one transaction. It ignores entries about machines that are gone.
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
