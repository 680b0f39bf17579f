package agents

import (
	"context"
	"errors"
	"fmt"

	"bijou/agent"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/state"
	"bijou/state/durable"
)

type unitAgentGrammar struct {
	Unit string `required:"" placeholder:"UNIT" help:"The unit to run, SERVICE/N."`
	daemonFlags
}

// RunUnitAgent is the applet unit-agent.
func RunUnitAgent(c applet.Call) int {
	var g unitAgentGrammar
	return daemon.Run(c, console.Command{Name: "unit-agent", Grammar: &g, Help: helpFiles}, func(ctx context.Context, d daemon.Daemon) error {
		return serveUnit(ctx, d, g.Unit, g.daemonFlags)
	})
}

func serveUnit(ctx context.Context, d daemon.Daemon, unit string, p daemonFlags) (err error) {
	e, err := p.loadEnvironment()
	if err != nil {
		return err
	}
	s, err := p.openState(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	record, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (state.Unit, error) { return v.Unit(unit) })
	if err != nil {
		return err
	}
	dir, err := p.machineDir(e, record.Machine)
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("cannot make the machine's folder: %w", err)
	}
	claimant, err := daemon.NewClaimant(dir)
	if err != nil {
		return err
	}
	h := newHandover(e, p.Tools, d.Call.Applets)
	return withMovedHint(h.exitError(ctx, daemon.RunRoles(ctx, []daemon.Role{
		func(ctx context.Context) error {
			return agent.RunUnit(ctx, agent.UnitOptions{Unit: unit, Options: agent.Options{
				State: s, Claimant: claimant, Dir: dir, Tools: p.Tools, Drain: h.drain, Fault: d.Call.Fault,
				Ready: d.Notifier.NotifyReady, Watchdog: d.Notifier.Pulse, SecretKeys: e.SecretKeys(),
			}})
		},
		func(ctx context.Context) error { return h.watch(ctx, s) },
	})))
}
