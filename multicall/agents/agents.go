// Package agents has the daemons of an environment: machine-agent, unit-agent and provisioner. It assembles each daemon
// from a state, an agent and a provisioner. It switches a daemon to a different binary when `juju upgrade-model` has
// ordered one. The packages agent and provision do the work of agents and provisioners.
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
	"bijou/state/secret"
)

type machineAgentGrammar struct {
	Machine string `required:"" placeholder:"ID" help:"Serve machine ID."`
	daemonFlags
}

// RunMachineAgent runs the applet machine-agent, and returns its exit code.
func RunMachineAgent(c applet.Call) int {
	var g machineAgentGrammar
	return daemon.Run(c, console.Command{Name: "machine-agent", Grammar: &g, Help: helpFiles}, g.serveMachine)
}

// serveMachine runs the machine's agent. On a machine that manages the environment, it also runs a provisioner. Such
// machines are machine 0, and machines that were added with a provisioner. If an upgrade orders a different binary, the
// roles end, and the process continues with that binary.
func (g *machineAgentGrammar) serveMachine(ctx context.Context, d daemon.Daemon) error {
	e, err := g.loadEnvironment()
	if err != nil {
		return err
	}
	dir, err := g.makeMachineDir(e, g.Machine)
	if err != nil {
		return err
	}

	hold, err := holdMachineDir(ctx, d, dir)
	if err != nil {
		return err
	}
	defer hold.Release()

	return g.withState(ctx, func(opened *state.State) error {
		s := d.Call.StateOfAgents(opened, g.Machine) // the same as opened, except in tests
		h := newHandover(e, g.Tools, d.Call.Applets)
		options, err := g.agentOptions(d, h, s, dir)
		if err != nil {
			return err
		}

		machine, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (state.Machine, error) {
			return v.Machine(g.Machine)
		})
		if err != nil {
			return err
		}

		// RunMachine announces the process's agents. A role that campaigns with this session, as the provisioner does,
		// waits for that.
		const announces = true
		session := state.NewSharedSession(s, announces)
		defer endSession(ctx, session)

		roles := []daemon.Role{func(ctx context.Context) error {
			return agent.RunMachine(ctx, agent.MachineOptions{Machine: g.Machine, Process: session, Options: options})
		}}
		if slices.Contains(machine.Jobs, state.JobManage) {
			shared := session
			if s != opened {
				// In tests, these roles use a different state, to which the session's lease does not belong. Without
				// a session they open their own.
				shared = nil
			}
			roles = append(roles, managerRoles(d, opened, shared, e)...)
		}

		return h.run(ctx, s, roles...)
	})
}

// managerRoles returns the roles of a process that manages the environment: the provisioner and, if machines need it, the
// gateway. If session is nil, the provisioner opens its own session.
func managerRoles(d daemon.Daemon, s *state.State, session *state.SharedSession, e home.Environment) []daemon.Role {
	roles := []daemon.Role{newProvisionerRole(d, s, session, e)}
	if serveGateway := newGatewayRole(s, e); serveGateway != nil {
		roles = append(roles, serveGateway)
	}
	return roles
}

// agentOptions returns the options that the agents of a machine and of one unit share. dir is the machine's
// directory.
func (p *daemonFlags) agentOptions(d daemon.Daemon, h *handover, s *state.State, dir string) (agent.Options, error) {
	claimant, err := daemon.NewClaimant(dir)
	if err != nil {
		return agent.Options{}, err
	}

	return agent.Options{
		State:      s,
		Claimant:   claimant,
		Dir:        dir,
		Tools:      p.Tools,
		Drain:      h.drain,
		Fault:      d.Call.Fault,
		Ready:      d.Notifier.NotifyReady,
		Watchdog:   d.Notifier.Pulse,
		SecretKeys: secretKeeper(s, h.env),
	}, nil
}

// secretKeeper returns the keeper of the keys for secrets. It is the gateway that serves the state or, for an agent
// that opens the state directly, the file of keys.
func secretKeeper(s *state.State, e home.Environment) secret.Keeper {
	if k := s.SecretKeeper(); k != nil {
		return k
	}
	return e.SecretKeys()
}

// endSession closes the session. If it cannot, for example because the store is unreachable, it leaves the session to
// expire.
func endSession(ctx context.Context, session *state.SharedSession) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sessionCloseTimeout)
	defer cancel()
	if err := session.Close(ctx); err != nil {
		slog.Debug("cannot end the process's session; it will expire", "error", err)
	}
}

const sessionCloseTimeout = 5 * time.Second

// refuseCopy returns an error if the directory of e is a copy of the environment's real directory. That is the
// case if the store is a file, and a different directory holds the claim of machine 0. refuseCopy waits while the
// store is unreachable.
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

// withMovedHint adds a hint to the error of an entity that a different agent has claimed. It returns other errors, and
// nil, unchanged.
func withMovedHint(err error) error {
	if !errors.Is(err, state.ErrClaimed) {
		return err
	}

	return console.Hint(
		err,
		`if the other agent is gone for good, or its directory was moved here: "juju start --moved"; the two agents must never run at the same time`,
	)
}

// takeoverTimeout is the time that the previous process of a machine has to end, when a service takes over the machine.
// Within this time, the running hooks of the previous process have ten seconds to end.
const takeoverTimeout = 30 * time.Second

// holdMachineDir locks a machine's directory for this process. This lock is not the machine's claim, which
// is in the store. A daemon that systemd has started takes over from a process that does not belong to a
// service of bijou, such as a process that bootstrap has started. It does not take over from such a service.
func holdMachineDir(ctx context.Context, d daemon.Daemon, dir string) (*process.Hold, error) {
	hold, err := process.Take(dir)
	if err == nil {
		return hold, nil
	}
	isStartedBySystemd := d.Notifier.Listening
	if !isStartedBySystemd || !errors.Is(err, process.ErrHeld) {
		return nil, err
	}

	// Without a known holder, there is nothing to take over from.
	holder, holderErr := process.Holder(dir)
	if holderErr != nil {
		return nil, err
	}
	if service := systemd.ServiceOf(holder.PID); service != "" {
		return nil, fmt.Errorf("%w: process %d of %s", err, holder.PID, service)
	}

	slog.Info("ending the machine's process: from now on systemd runs it", "pid", holder.PID)
	if err := local.Halt(ctx, dir, takeoverTimeout); err != nil {
		return nil, err
	}

	return process.Take(dir)
}

type unitAgentGrammar struct {
	Unit string `required:"" placeholder:"UNIT" help:"Run UNIT, such as web/0."`
	daemonFlags
}

// RunUnitAgent runs the applet unit-agent, and returns its exit code.
func RunUnitAgent(c applet.Call) int {
	var g unitAgentGrammar
	return daemon.Run(c, console.Command{Name: "unit-agent", Grammar: &g, Help: helpFiles}, g.serveUnit)
}

// serveUnit runs the unit's agent until ctx is done, the agent ends, or a different binary must continue its work.
func (g *unitAgentGrammar) serveUnit(ctx context.Context, d daemon.Daemon) error {
	e, err := g.loadEnvironment()
	if err != nil {
		return err
	}

	return g.withState(ctx, func(opened *state.State) error {
		record, err := daemon.ReadRetrying(ctx, opened, func(v *state.View) (state.Unit, error) {
			return v.Unit(g.Unit)
		})
		if err != nil {
			return err
		}
		s := d.Call.StateOfAgents(opened, record.Machine) // the same as opened, except in tests

		dir, err := g.makeMachineDir(e, record.Machine)
		if err != nil {
			return err
		}

		h := newHandover(e, g.Tools, d.Call.Applets)
		options, err := g.agentOptions(d, h, s, dir)
		if err != nil {
			return err
		}

		return h.run(ctx, s, func(ctx context.Context) error {
			return agent.RunUnit(ctx, agent.UnitOptions{Unit: g.Unit, Options: options})
		})
	})
}

type provisionerGrammar struct {
	Env     string `required:"" placeholder:"DIR" type:"path" help:"Use the model in this directory, which bootstrap has created."`
	Metrics string `env:"BIJOU_METRICS" placeholder:"ADDRESS" help:"Serve metrics for Prometheus at this address, as 127.0.0.1:9300."`
}

// RunProvisioner runs the applet provisioner, and returns its exit code.
func RunProvisioner(c applet.Call) int {
	var g provisionerGrammar
	return daemon.Run(c, console.Command{Name: "provisioner", Grammar: &g, Help: helpFiles}, g.serveProvisioner)
}

// serveProvisioner runs a provisioner without a machine's agent. It ends when ctx is done, or when a
// different binary must continue its work.
func (g *provisionerGrammar) serveProvisioner(ctx context.Context, d daemon.Daemon) error {
	p := daemonFlags{Env: g.Env, Metrics: g.Metrics}
	e, err := p.loadEnvironment() // also sets p.State and p.Tools
	if err != nil {
		return err
	}

	return p.withState(ctx, func(s *state.State) error {
		// A machine's agent notices a copy when it claims the machine. A provisioner claims nothing.
		if err := refuseCopy(ctx, s, e); err != nil {
			return err
		}

		h := newHandover(e, p.Tools, d.Call.Applets)
		// A provisioner has no presence, so it is ready even while it waits to lead.
		d.Notifier.NotifyReady()

		// The end of this role ends all roles, so that the process can switch to a different binary.
		awaitDrain := func(ctx context.Context) error {
			select {
			case <-h.drain:
			case <-ctx.Done():
			}
			return nil
		}
		var shared *state.SharedSession // nil, so that the provisioner opens its own session
		return h.run(ctx, s, newProvisionerRole(d, s, shared, e), awaitDrain)
	})
}

// newProvisionerRole returns the role of a provisioner. If session is nil, the role opens its own session.
func newProvisionerRole(d daemon.Daemon, s *state.State, session *state.SharedSession, e home.Environment) daemon.Role {
	return func(ctx context.Context) error {
		p, err := providers.NewClient(ctx, s, e)
		if err != nil {
			return err
		}
		defer p.Close()
		return provision.Run(ctx, provision.Options{State: s, Process: session, Provider: p, Fault: d.Call.Fault})
	}
}
