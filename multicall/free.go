package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"bijou/agent"
	"bijou/multicall/home"
	"bijou/provision/plugin"
	"bijou/provision/provider"
	"bijou/state"
)

// recordPatience is how long the state is asked what its provider is to know. An
// environment can be taken down without it.
const recordPatience = 5 * time.Second

// freeInstances ends all that the environment's provider has made, and frees it.
// Machines of the provider "local" are folders of the environment itself.
func freeInstances(ctx context.Context, e home.Environment) error {
	if e.Provider == state.ProviderLocal {
		return nil
	}
	wanted, err := lastWanted(ctx, e)
	if err != nil {
		slog.Warn("the instances of the environment's provider stay", "provider", e.Provider, "error", err)
		return nil
	}
	sockets, err := agent.ProviderFolder(e.UUID)
	if err != nil {
		return err
	}
	p := plugin.NewClient(plugin.Options{
		Name: e.Provider, Sockets: sockets,
		Find:   func(sum string) (string, error) { return findProvider(e.Provider, sum, e) },
		Demand: func(context.Context) (plugin.Demand, error) { return plugin.Present, nil },
		Wanted: func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer p.Close()
	return stopAll(ctx, p)
}

// stopAll stops every instance, and goes on after one that it cannot stop.
func stopAll(ctx context.Context, p provider.Provider) error {
	all, err := p.Instances(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, i := range all {
		if err := p.Stop(ctx, i.ID); err != nil {
			errs = append(errs, fmt.Errorf("machine %s: %w", i.Machine, err))
		}
	}
	return errors.Join(errs...)
}

// lastWanted is what the provider's process is to be, as far as that is known. One
// from outside is not started unless the state says by what it is told from others.
func lastWanted(ctx context.Context, e home.Environment) (w plugin.Wanted, err error) {
	ctx, cancel := context.WithTimeout(ctx, recordPatience)
	defer cancel()
	env := state.Environment{Name: e.Name, UUID: e.UUID, Provider: e.Provider}
	s, err := state.Open(ctx, e.State)
	if err == nil {
		err = s.View(ctx, func(v *state.View) (err error) {
			env, err = v.Environment()
			return err
		})
		err = errors.Join(err, s.Close())
	}
	if isBuiltin(e.Provider) {
		err = nil
	}
	return providerWanted(e, env), err
}
