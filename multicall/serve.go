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

// serveMachine hosts a provisioner, too, on a machine that manages the environment:
// machine 0, and others that were added so.
func serveMachine(ctx context.Context, d daemonParts, id string, p daemonFlags) (err error) {
	e, err := p.loadEnvironment()
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
	hold, err := d.takeMachine(ctx, dir)
	if err != nil {
		return err
	}
	defer hold.Release()
	s, err := p.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	fault, err := newFault(d.options)
	if err != nil {
		return err
	}
	claimant, err := newClaimant(dir)
	if err != nil {
		return err
	}
	session := state.NewSharedSession(s, true)
	defer endSession(ctx, session)
	h := newHandover(e, p.Tools)
	roles := []role{func(ctx context.Context) error {
		return agent.RunMachine(ctx, agent.MachineOptions{
			State: s, Process: session, Machine: id, Claimant: claimant, Dir: dir, Tools: p.Tools, Drain: h.retire, Fault: fault,
			Ready: d.notifier.notifyReady, Watchdog: d.notifier.pulse,
		})
	}, func(ctx context.Context) error { return h.watch(ctx, s) }}
	manages, err := hostsProvisioner(ctx, s, id)
	if err != nil {
		return err
	}
	if manages {
		roles = append(roles, newProvisionerRole(s, session, e))
	}
	return withMovedHint(h.exitError(ctx, runRoles(ctx, roles)))
}

func hostsProvisioner(ctx context.Context, s *state.State, id string) (yes bool, err error) {
	err = viewRetrying(ctx, s, func(v *state.View) error {
		m, err := v.Machine(id)
		yes = slices.Contains(m.Jobs, state.JobManage)
		return err
	})
	return yes, err
}

func serveUnit(ctx context.Context, d daemonParts, unit string, p daemonFlags) (err error) {
	e, err := p.loadEnvironment()
	if err != nil {
		return err
	}
	s, err := p.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var machine string
	err = viewRetrying(ctx, s, func(v *state.View) error {
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
	fault, err := newFault(d.options)
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
	h := newHandover(e, p.Tools)
	return withMovedHint(h.exitError(ctx, runRoles(ctx, []role{
		func(ctx context.Context) error {
			return agent.RunUnit(ctx, agent.UnitOptions{
				State: s, Unit: unit, Claimant: claimant, Dir: dir, Tools: p.Tools, Drain: h.retire, Fault: fault,
				Ready: d.notifier.notifyReady, Watchdog: d.notifier.pulse,
			})
		},
		func(ctx context.Context) error { return h.watch(ctx, s) },
	})))
}

func serveProvisioner(ctx context.Context, d daemonParts, p daemonFlags) (err error) {
	e, err := p.loadEnvironment()
	if err != nil {
		return err
	}
	s, err := p.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := refuseCopy(ctx, s, e); err != nil {
		return err
	}
	h := newHandover(e, p.Tools)
	d.notifier.notifyReady() // it has no presence: it leads, or waits to
	return h.exitError(ctx, runRoles(ctx, []role{
		func(ctx context.Context) error { return newProvisionerRole(s, nil, e)(ctx) },
		func(ctx context.Context) error { return h.watch(ctx, s) },
		func(ctx context.Context) error {
			select {
			case <-h.retire:
			case <-ctx.Done():
			}
			return nil
		},
	}))
}

// endSession leaves the session to expire if the store is away.
func endSession(ctx context.Context, session *state.SharedSession) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionCloseTimeout)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		slog.Debug("the process's session is left to expire", "error", err)
	}
}

const sessionCloseTimeout = 5 * time.Second

// newProvisionerRole opens a session of its own if session is nil.
func newProvisionerRole(s *state.State, session *state.SharedSession, e home.Environment) role {
	return func(ctx context.Context) error {
		p, err := newProvider(ctx, s, e)
		if err != nil {
			return err
		}
		defer p.Close()
		return provision.Run(ctx, provision.Options{State: s, Process: session, Provider: p})
	}
}

// machineProcess runs a local machine's agent from the environment's own tools, since the
// binary that runs now may be gone later.
func machineProcess(e home.Environment, id string) process.Detached {
	return process.Detached{
		Path: filepath.Join(e.ToolsDir(), "machine-agent"),
		Args: []string{"machine-agent", "--machine", id, "--env", e.Dir},
		Log:  e.LogFile(id),
	}
}

// runRoles cancels the other roles when one ends, for whatever reason. A store that is
// gone ends all, and is returned as one error.
func runRoles(ctx context.Context, roles []role) error {
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
