package multicall

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

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
	p := plugin.NewClient(plugin.Options{
		Name: e.Provider, Sockets: providerFolder(e),
		Find:   func(sum string) (string, error) { return findProvider(e.Provider, sum, e) },
		Demand: func(context.Context) (plugin.Demand, error) { return plugin.Present, nil },
		Wanted: func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer p.Close()
	return stopAll(ctx, p, e.UUID)
}

// stopPasses is how often instances are listed and stopped: a provisioner of another
// host, which does not know yet that the environment goes, may start some again.
// stopsAtOnce is how many are stopped at the same time.
const stopPasses, stopsAtOnce = 5, 8

// stopAll stops every instance of the environment, until none is listed any more.
func stopAll(ctx context.Context, p provider.Provider, uuid string) error {
	for range stopPasses {
		left, err := remaining(ctx, p, uuid)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := stopEach(ctx, p, left); err != nil {
			return err
		}
	}
	left, err := remaining(ctx, p, uuid)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("there are instances still or again, that of machine %s among them: a provisioner may run on another host", left[0].Machine)
	}
	return err
}

// remaining lists the instances that are surely the environment's.
func remaining(ctx context.Context, p provider.Provider, uuid string) ([]provider.Instance, error) {
	all, err := p.Instances(ctx)
	return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.ID == "" || i.Environment != uuid }), err
}

// stopEach stops several instances at a time, and goes on after one that it cannot
// stop.
func stopEach(ctx context.Context, p provider.Provider, instances []provider.Instance) error {
	errs := make([]error, len(instances))
	slots := make(chan struct{}, stopsAtOnce)
	var stops sync.WaitGroup
	for n, i := range instances {
		slots <- struct{}{}
		stops.Go(func() {
			defer func() { <-slots }()
			if err := p.Stop(ctx, i.ID); err != nil {
				errs[n] = fmt.Errorf("machine %s: %w", i.Machine, err)
			}
		})
	}
	stops.Wait()
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
