package provision

import (
	"context"
	"errors"
	"io"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

const (
	firstRetry = 10 * time.Second // after a transient failure; doubles
	lastRetry  = 10 * time.Minute
)

// job makes what the crew does of an action.
func (l *lead) job(a Action, s snapshot) func(context.Context) error {
	return func(ctx context.Context) error {
		log := l.Log.With("action", a.Verb, "machine", a.Machine, "instance", a.Instance)
		log.Info("provisioner acts")
		err := l.act(ctx, a, s)
		if err != nil && ctx.Err() == nil {
			log.Warn("provisioner's action failed", "error", err)
		}
		return err
	}
}

// act does what the action says.
func (l *lead) act(ctx context.Context, a Action, s snapshot) error {
	switch a.Verb {
	case Start:
		return l.start(ctx, s.spec(a.Machine))
	case Record:
		return l.record(ctx, a.Machine, a.Instance)
	case Stop:
		return l.Provider.Stop(ctx, a.Instance)
	case Remove:
		return l.remove(ctx, a.Machine)
	}
	panic("internal error: unknown action " + string(a.Verb))
}

// start starts an instance and records it, or why it could not be.
func (l *lead) start(ctx context.Context, spec provider.Spec) error {
	i, err := l.Provider.Start(ctx, spec, io.Discard)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		l.Log.Warn("instance did not start", "machine", spec.Machine, "error", err)
		return l.recordFailure(ctx, spec.Machine, err)
	}
	l.crew.tell(outcome{machine: spec.Machine})
	return l.record(ctx, spec.Machine, i.ID)
}

// record writes down a machine's instance. A machine that is gone meanwhile makes
// the instance a stray one, for the next plan.
func (l *lead) record(ctx context.Context, machine, instance string) error {
	return ignoreGone(l.leadership.Update(ctx, func(tx *state.Tx) error {
		if err := tx.SetInstance(machine, instance, state.Addresses{}); err != nil {
			return err
		}
		m, err := tx.Machine(machine)
		if err != nil || m.Message == "" {
			return err
		}
		return tx.SetMachineStatus(machine, state.MachinePending, "")
	}))
}

// recordFailure writes down why a start failed. A transient failure is tried
// again later; any other waits for the operator.
func (l *lead) recordFailure(ctx context.Context, machine string, failure error) error {
	status := state.MachineError
	if errors.Is(failure, provider.ErrTransient) {
		status = state.MachinePending
		l.crew.tell(outcome{machine: machine, transient: true})
	}
	return ignoreGone(l.leadership.Update(ctx, func(tx *state.Tx) error {
		return tx.SetMachineStatus(machine, status, failure.Error())
	}))
}

// remove takes a machine out of state.
func (l *lead) remove(ctx context.Context, machine string) error {
	return ignoreGone(l.leadership.Update(ctx, func(tx *state.Tx) error { return tx.RemoveMachine(machine) }))
}

func ignoreGone(err error) error {
	if errors.Is(err, state.ErrNotFound) {
		return nil
	}
	return err
}

// outcome is how a start has ended.
type outcome struct {
	machine   string
	transient bool // failed, to be tried again
}

// settle takes up how starts have ended.
func (l *lead) settle(outcomes []outcome) {
	for _, o := range outcomes {
		if !o.transient {
			delete(l.held, o.machine)
			continue
		}
		h := l.held[o.machine]
		delay := min(firstRetry<<min(h.attempts, 10), lastRetry)
		l.held[o.machine] = hold{attempts: h.attempts + 1, due: l.Now().Add(delay)}
	}
}
