package provision

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"bijou/state"
)

// sweep is the one job that is not Plan's: to remove what nothing in state refers
// to any more.
const sweep Verb = "sweep"

// job makes what the crew does of an action.
func (l *lead) job(a Action) job {
	return job{a, func(ctx context.Context) error {
		log := l.Log.With("action", a.Verb, "machine", a.Machine, "instance", a.Instance)
		log.Info("provisioner acts")
		err := l.act(ctx, a)
		if err != nil && ctx.Err() == nil {
			log.Warn("provisioner's action failed", "error", err)
		}
		return err
	}}
}

// act does what the action says. Jobs call it.
func (l *lead) act(ctx context.Context, a Action) error {
	switch a.Verb {
	case Start:
		return l.start(ctx, a.Machine)
	case Record:
		return l.record(ctx, a, 0)
	case Stop:
		return l.stop(ctx, a)
	case Remove:
		return l.remove(ctx, a)
	}
	panic("internal error: unknown action " + string(a.Verb))
}

// record writes down which instance a machine has. A machine that is gone meanwhile
// makes the instance one to be stopped, for the next plan. An instance that was started
// may claim the machine in the place of the one before, which held it at that epoch.
func (l *lead) record(ctx context.Context, a Action, epoch int64) error {
	return l.records.record(ctx, func(tx *state.Tx) error {
		if err := tx.FreeClaim(a.Machine, a.Instance, epoch); err != nil {
			return err
		}
		return tx.SetStarted(a.Machine, a.Instance, state.Addresses{Private: a.Private, Public: a.Public})
	})
}

// stop ends an instance, if this is still the leader, and records on its machine
// that it is gone, or why it could not be ended. One that a start has answered with meanwhile, whosever the
// provider told that it is, stays.
func (l *lead) stop(ctx context.Context, a Action) error {
	if l.owners.taken(a.Instance) {
		return nil
	}
	if err := l.leads(ctx); err != nil {
		return err
	}
	asked, cancel := context.WithTimeout(ctx, stopLimit)
	defer cancel()
	err := l.Provider.Stop(asked, a.Instance)
	switch {
	case ctx.Err() != nil:
		return cmp.Or(err, ctx.Err())
	case err == nil && a.Machine == "":
		return nil
	case err == nil:
		return l.records.record(ctx, func(tx *state.Tx) error { return tx.SetStopped(a.Machine, a.Instance) })
	}
	if asked.Err() != nil {
		err = fmt.Errorf("the provider has not ended it within %s: %w", stopLimit, err)
	}
	failure := fmt.Sprintf("cannot stop instance %q: %v", a.Instance, err)
	return errors.Join(err, l.records.record(ctx, func(tx *state.Tx) error {
		m, err := tx.Machine(a.Machine)
		if err != nil || m.Life != state.Dead {
			return err
		}
		return tx.SetStopFailure(a.Machine, failure)
	}))
}

// remove takes a machine out of state.
func (l *lead) remove(ctx context.Context, a Action) error {
	if a.Instance != "" {
		l.Log.Info("a machine's instance is left to run: "+state.HarvestMode, "machine", a.Machine, "instance", a.Instance)
	}
	return l.records.record(ctx, func(tx *state.Tx) error {
		err := tx.RemoveMachine(a.Machine)
		if errors.Is(err, state.ErrInUse) {
			return nil // it has units again: the next plan knows
		}
		return err
	})
}

// leads fails unless this is still the leader.
func (l *lead) leads(ctx context.Context) error {
	return l.leadership.Update(ctx, func(*state.Tx) error { return nil })
}
