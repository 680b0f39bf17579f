// Package agents has the daemons of an environment: machine-agent, unit-agent and
// provisioner. Each is made here of its parts (a state, an agent, a provisioner), and goes
// over to another binary when upgrade-juju has ordered that. What an agent and a provisioner
// do is in agent and provision. Only multicall imports it.
package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"bijou/agent"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/multicall/providers"
	"bijou/multicall/systemd"
	"bijou/provision"
	"bijou/provision/local"
	"bijou/provision/local/process"
	"bijou/state"
)

type machineAgentGrammar struct {
	Machine string `required:"" placeholder:"ID" help:"The machine to serve."`
	daemonFlags
}

// RunMachineAgent is the applet machine-agent.
func RunMachineAgent(c applet.Call) int {
	var g machineAgentGrammar
	return daemon.Run(c, console.Command{Name: "machine-agent", Grammar: &g, Help: helpFiles}, g.serveMachine)
}

// serveMachine hosts a provisioner, too, on a machine that manages the environment:
// machine 0, and others that were added so.
func (g *machineAgentGrammar) serveMachine(ctx context.Context, d daemon.Daemon) (err error) {
	e, err := g.loadEnvironment()
	if err != nil {
		return err
	}
	dir, err := g.makeMachineDir(e, g.Machine)
	if err != nil {
		return err
	}
	hold, err := holdMachineFolder(ctx, d, dir)
	if err != nil {
		return err
	}
	defer hold.Release()
	s, closeState, err := g.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeState()) }()
	claimant, err := daemon.NewClaimant(dir)
	if err != nil {
		return err
	}
	session := state.NewSharedSession(s, true)
	defer endSession(ctx, session)
	h := newHandover(e, g.Tools, d.Call.Applets)
	roles := []daemon.Role{func(ctx context.Context) error {
		return agent.RunMachine(ctx, agent.MachineOptions{Machine: g.Machine, Process: session, Options: agent.Options{
			State: s, Claimant: claimant, Dir: dir, Tools: g.Tools, Drain: h.drain, Fault: d.Call.Fault,
			Ready: d.Notifier.NotifyReady, Watchdog: d.Notifier.Pulse, SecretKeys: e.SecretKeys(),
		}})
	}, func(ctx context.Context) error { return h.watch(ctx, s) }}
	machine, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (state.Machine, error) { return v.Machine(g.Machine) })
	if err != nil {
		return err
	}
	if slices.Contains(machine.Jobs, state.JobManage) {
		roles = append(roles, newProvisionerRole(s, session, e))
	}
	return withMovedHint(h.exitError(ctx, daemon.RunRoles(ctx, roles)))
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

// refuseCopy refuses an environment in a file whose machine 0 is another folder's.
func refuseCopy(ctx context.Context, s *state.State, e home.Environment) error {
	if !strings.HasPrefix(e.State, "sqlite:") {
		return nil
	}
	here, err := daemon.HolderOf(e.MachineDir("0"))
	if err != nil {
		return err
	}
	return withMovedHint(daemon.RetryWhileAway(ctx, func() error {
		return s.View(ctx, func(v *state.View) error { return v.CheckPlace("0", here) })
	}))
}

func withMovedHint(err error) error {
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}
	return console.Hint(err, `if that one is gone, or its folder was moved here: "juju start --moved"; it is never to run beside this one`)
}

// takeoverTimeout bounds the end of a process whose machine a service takes over: its
// hooks in flight have ten seconds.
const takeoverTimeout = 30 * time.Second

// holdMachineFolder locks the folder of a machine for this process; the machine's claim, in the
// store, is another thing. A daemon that systemd has started takes over from a process that systemd
// does not know, as bootstrap starts one; two services never do so to each other.
func holdMachineFolder(ctx context.Context, d daemon.Daemon, dir string) (*process.Hold, error) {
	hold, err := process.Take(dir)
	if !d.Notifier.Listening || !errors.Is(err, process.ErrHeld) {
		return hold, err
	}
	holder, gone := process.Holder(dir)
	if gone != nil {
		return nil, err
	}
	if service := systemd.ServiceOf(holder.PID); service != "" {
		return nil, fmt.Errorf("%w: process %d of %s", err, holder.PID, service)
	}
	slog.Info("the machine's process is asked to end: from now on it is systemd's", "pid", holder.PID)
	if err := local.Halt(ctx, dir, takeoverTimeout); err != nil {
		return nil, err
	}
	return process.Take(dir)
}

type unitAgentGrammar struct {
	Unit string `required:"" placeholder:"UNIT" help:"The unit to run, SERVICE/N."`
	daemonFlags
}

// RunUnitAgent is the applet unit-agent.
func RunUnitAgent(c applet.Call) int {
	var g unitAgentGrammar
	return daemon.Run(c, console.Command{Name: "unit-agent", Grammar: &g, Help: helpFiles}, g.serveUnit)
}

func (g *unitAgentGrammar) serveUnit(ctx context.Context, d daemon.Daemon) (err error) {
	e, err := g.loadEnvironment()
	if err != nil {
		return err
	}
	s, closeState, err := g.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeState()) }()
	record, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (state.Unit, error) { return v.Unit(g.Unit) })
	if err != nil {
		return err
	}
	dir, err := g.makeMachineDir(e, record.Machine)
	if err != nil {
		return err
	}
	claimant, err := daemon.NewClaimant(dir)
	if err != nil {
		return err
	}
	h := newHandover(e, g.Tools, d.Call.Applets)
	return withMovedHint(h.exitError(ctx, daemon.RunRoles(ctx, []daemon.Role{
		func(ctx context.Context) error {
			return agent.RunUnit(ctx, agent.UnitOptions{Unit: g.Unit, Options: agent.Options{
				State: s, Claimant: claimant, Dir: dir, Tools: g.Tools, Drain: h.drain, Fault: d.Call.Fault,
				Ready: d.Notifier.NotifyReady, Watchdog: d.Notifier.Pulse, SecretKeys: e.SecretKeys(),
			}})
		},
		func(ctx context.Context) error { return h.watch(ctx, s) },
	})))
}

type provisionerGrammar struct {
	Env     string `required:"" placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
	Metrics string `env:"BIJOU_METRICS" placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address, as 127.0.0.1:9300."`
}

// RunProvisioner is the applet provisioner.
func RunProvisioner(c applet.Call) int {
	var g provisionerGrammar
	return daemon.Run(c, console.Command{Name: "provisioner", Grammar: &g, Help: helpFiles}, g.serveProvisioner)
}

func (g *provisionerGrammar) serveProvisioner(ctx context.Context, d daemon.Daemon) (err error) {
	p := daemonFlags{Env: g.Env, Metrics: g.Metrics}
	e, err := p.loadEnvironment()
	if err != nil {
		return err
	}
	s, closeState, err := p.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeState()) }()
	if err := refuseCopy(ctx, s, e); err != nil {
		return err
	}
	h := newHandover(e, p.Tools, d.Call.Applets)
	d.Notifier.NotifyReady() // it has no presence: it leads, or waits to
	return h.exitError(ctx, daemon.RunRoles(ctx, []daemon.Role{
		newProvisionerRole(s, nil, e),
		func(ctx context.Context) error { return h.watch(ctx, s) },
		func(ctx context.Context) error {
			select {
			case <-h.drain:
			case <-ctx.Done():
			}
			return nil
		},
	}))
}

// newProvisionerRole opens a session of its own if session is nil.
func newProvisionerRole(s *state.State, session *state.SharedSession, e home.Environment) daemon.Role {
	return func(ctx context.Context) error {
		p, err := providers.NewClient(ctx, s, e)
		if err != nil {
			return err
		}
		defer p.Close()
		return provision.Run(ctx, provision.Options{State: s, Process: session, Provider: p})
	}
}
