package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"bijou/state"
)

// sweepState is the one job that is not Plan's: it removes what nothing in state refers to any more.
const sweepState Verb = "sweep"

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

// Jobs call it.
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

// A machine that is gone meanwhile makes the instance one to be stopped, for the next plan. An
// instance that was started may claim the machine in the place of the one before, which held it at
// that epoch.
func (l *leader) recordInstance(ctx context.Context, a Action, epoch int64) error {
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		if err := tx.FreeClaim(a.Machine, a.Instance, epoch); err != nil {
			return err
		}
		return tx.SetStarted(a.Machine, a.Instance, state.Addresses{Private: a.Private, Public: a.Public})
	})
}

// Only a leader stops instances. One that a start has returned meanwhile, to whichever machine the
// provider had assigned it, stays.
func (l *leader) stopInstance(ctx context.Context, a Action) error {
	if l.owners.isTaken(a.Instance) {
		return nil
	}
	if err := l.checkLeading(ctx); err != nil {
		return err
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
	return errors.Join(err, l.recorder.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(a.Machine)
		if err != nil || m.Life != state.Dead {
			return err
		}
		return tx.SetStopFailure(a.Machine, failure)
	}))
}

func (l *leader) removeMachine(ctx context.Context, a Action) error {
	if a.Instance != "" {
		l.Log.Info("a machine's instance is left to run: "+state.HarvestMode, "machine", a.Machine, "instance", a.Instance)
	}
	return l.recorder.record(ctx, func(tx *state.Tx) error {
		err := tx.RemoveMachine(a.Machine)
		if errors.Is(err, state.ErrInUse) {
			return nil // it has units again: the next plan knows
		}
		return err
	})
}

func (l *leader) checkLeading(ctx context.Context) error {
	return l.leadership.Update(ctx, func(*state.Tx) error { return nil })
}

// logSource is the name of the provisioner's log.
const logSource = "provisioner"

// juju status shows what is reported, and that nothing is wrong any more.
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
	err := l.leadership.Update(ctx, func(tx *state.Tx) error { return tx.SetProvisionerTrouble(problems, l.Now(), l.listFailure.due) })
	if err != nil || !changed {
		return err
	}
	var lines []state.LogLine
	for _, w := range problems {
		lines = append(lines, state.LogLine{Time: l.Now(), Level: "WARNING", Message: "is in trouble: " + w})
	}
	if len(problems) == 0 {
		lines = []state.LogLine{{Time: l.Now(), Level: "INFO", Message: "goes on again"}}
	}
	return l.State.AppendLog(ctx, logSource, lines)
}
