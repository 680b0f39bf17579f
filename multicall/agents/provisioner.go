package agents

import (
	"context"
	"errors"

	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/multicall/providers"
	"bijou/provision"
	"bijou/state"
)

type provisionerGrammar struct {
	Env string `required:"" placeholder:"DIR" type:"path" help:"The environment's folder, as bootstrap made it."`
}

// RunProvisioner is the applet provisioner.
func RunProvisioner(c applet.Call) int {
	var g provisionerGrammar
	return daemon.Run(c, console.Command{Name: "provisioner", Grammar: &g, Help: helpFiles}, func(ctx context.Context, d daemon.Daemon) error {
		return serveProvisioner(ctx, d, daemonFlags{Env: g.Env})
	})
}

func serveProvisioner(ctx context.Context, d daemon.Daemon, p daemonFlags) (err error) {
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
	h := newHandover(e, p.Tools, d.Call.Applets)
	d.Notifier.NotifyReady() // it has no presence: it leads, or waits to
	return h.exitError(ctx, daemon.RunRoles(ctx, []daemon.Role{
		func(ctx context.Context) error { return newProvisionerRole(s, nil, e)(ctx) },
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
