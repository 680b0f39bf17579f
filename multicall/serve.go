package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"bijou/agent"
	"bijou/multicall/home"
	"bijou/provision"
	"bijou/provision/local/process"
	"bijou/state"
	"bijou/state/durable"
)

// role is one part of a process; it returns when ctx is done, or its work is.
type role func(ctx context.Context) error

// serveMachine is a machine agent's process. One that manages the environment
// (machine 0, and others that were added so) hosts a provisioner, too.
func serveMachine(ctx context.Context, d daemonParts, id string, p place) (err error) {
	e, err := p.complete()
	if err != nil {
		return err
	}
	dir, err := p.machineDir(e, id)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil { // the first time on this host
		return fmt.Errorf("cannot make the machine's folder: %w", err)
	}
	hold, err := d.take(ctx, dir)
	if err != nil {
		return err
	}
	defer hold.Release()
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fault, err := fault(d.options)
	if err != nil {
		return err
	}
	claimant, err := newClaimant(dir)
	if err != nil {
		return err
	}
	session := state.NewProcess(s, true)
	defer endSession(ctx, session)
	over := newHandover(e, p.Tools)
	roles := []role{func(ctx context.Context) error {
		return agent.RunMachine(ctx, agent.MachineOptions{
			State: s, Process: session, Machine: id, Claimant: claimant, Dir: dir, Tools: p.Tools, Retire: over.retire, Fault: fault,
			Ready: d.manager.ready, Pulse: d.manager.pulse,
		})
	}, func(ctx context.Context) error { return over.run(ctx, s) }}
	manages, err := manages(ctx, s, id)
	if err != nil {
		return err
	}
	if manages {
		roles = append(roles, provisioner(s, session, e))
	}
	return hintMoved(over.outcome(ctx, together(ctx, roles)))
}

// manages tells if the machine hosts the provisioner.
func manages(ctx context.Context, s *state.State, id string) (yes bool, err error) {
	err = look(ctx, s, func(v *state.View) error {
		m, err := v.Machine(id)
		yes = slices.Contains(m.Jobs, state.JobManage)
		return err
	})
	return yes, err
}

// serveUnit is the process of one unit agent.
func serveUnit(ctx context.Context, d daemonParts, unit string, p place) (err error) {
	e, err := p.complete()
	if err != nil {
		return err
	}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var machine string
	err = look(ctx, s, func(v *state.View) error {
		u, err := v.Unit(unit)
		machine = u.Machine
		return err
	})
	if err != nil {
		return err
	}
	dir, err := p.machineDir(e, machine)
	if err != nil {
		return err
	}
	fault, err := fault(d.options)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the machine's folder: %w", err)
	}
	claimant, err := newClaimant(dir)
	if err != nil {
		return err
	}
	over := newHandover(e, p.Tools)
	return hintMoved(over.outcome(ctx, together(ctx, []role{
		func(ctx context.Context) error {
			return agent.RunUnit(ctx, agent.UnitOptions{
				State: s, Unit: unit, Claimant: claimant, Dir: dir, Tools: p.Tools, Retire: over.retire, Fault: fault,
				Ready: d.manager.ready, Pulse: d.manager.pulse,
			})
		},
		func(ctx context.Context) error { return over.run(ctx, s) },
	})))
}

// serveProvisioner is the process of a provisioner by itself.
func serveProvisioner(ctx context.Context, d daemonParts, p place) (err error) {
	e, err := p.complete()
	if err != nil {
		return err
	}
	s, err := p.open(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := refuseCopy(ctx, s, e); err != nil {
		return err
	}
	over := newHandover(e, p.Tools)
	d.manager.ready() // it has no presence: it leads, or waits to
	return over.outcome(ctx, together(ctx, []role{
		func(ctx context.Context) error { return provisioner(s, nil, e)(ctx) },
		func(ctx context.Context) error { return over.run(ctx, s) },
		func(ctx context.Context) error {
			select {
			case <-over.retire:
			case <-ctx.Done():
			}
			return nil
		},
	}))
}

// endSession ends the process's session. One that the store, being away, does not
// hear of expires.
func endSession(ctx context.Context, session *state.Process) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionPatience)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		slog.Debug("the process's session is left to expire", "error", err)
	}
}

// sessionPatience is how long a store that does not answer is waited for at the
// end of a process.
const sessionPatience = 5 * time.Second

// provisioner is the role of a provisioner for the environment; a session of nil
// is its own.
func provisioner(s *state.State, session *state.Process, e home.Environment) role {
	return func(ctx context.Context) error {
		p, err := newProvider(ctx, s, e)
		if err != nil {
			return err
		}
		defer p.Close()
		return provision.Run(ctx, provision.Options{State: s, Process: session, Provider: p})
	}
}

// machineProcess is how the agent of a local machine is called: from the
// environment's own tools, since the binary that runs now may be gone later.
func machineProcess(e home.Environment, id string) process.Detached {
	return process.Detached{
		Path: filepath.Join(e.ToolsDir(), "machine-agent"),
		Args: []string{"machine-agent", "--machine", id, "--env", e.Dir},
		Log:  e.LogFile(id),
	}
}

// together runs roles in one process: when one ends, for whatever reason, the
// others are told to end, too. A store that is gone ends all, and is one error.
func together(ctx context.Context, roles []role) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make([]error, len(roles))
	var running sync.WaitGroup
	for i, r := range roles {
		running.Go(func() {
			defer cancel()
			errs[i] = r(ctx)
		})
	}
	running.Wait()
	for _, err := range errs {
		if errors.Is(err, state.ErrStoreGone) {
			return err
		}
	}
	return errors.Join(errs...)
}
