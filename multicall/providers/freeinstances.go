package providers

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

// stateTimeout bounds how long the state is asked for the provider's configuration: an
// environment can be taken down without it.
const stateTimeout = 5 * time.Second

// FreeInstances stops all that the environment's provider has made. Machines of the
// provider "local" are folders of the environment itself.
func (All) FreeInstances(ctx context.Context, e home.Environment) error {
	if e.Provider == state.ProviderLocal {
		return nil
	}
	wanted, err := readWanted(ctx, e)
	if err != nil {
		slog.Warn("the instances of the environment's provider stay", "provider", e.Provider, "error", err)
		return nil
	}
	p := plugin.NewClient(plugin.Options{
		Name: e.Provider, Sockets: providerFolder(e),
		Find:   func(sum string) (string, error) { return findProvider(e.Provider, sum, e) },
		Wanted: func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer p.Close()
	return stopInstances(ctx, p, e.UUID)
}

// maxStopPasses is how often instances are listed and stopped: a provisioner of another host, which
// does not know yet that the environment is being removed, may start some again.
const maxStopPasses, maxConcurrentStops = 5, 8

func stopInstances(ctx context.Context, p provider.Provider, uuid string) error {
	for range maxStopPasses {
		left, err := listInstances(ctx, p, uuid)
		if err != nil || len(left) == 0 {
			return err
		}
		if err := stopConcurrently(ctx, p, left); err != nil {
			return err
		}
	}
	left, err := listInstances(ctx, p, uuid)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("there are instances still or again, that of machine %s among them: a provisioner may run on another host", left[0].Machine)
	}
	return err
}

// listInstances leaves out instances of other environments, and those without an id.
func listInstances(ctx context.Context, p provider.Provider, uuid string) ([]provider.Instance, error) {
	all, err := p.Instances(ctx)
	return slices.DeleteFunc(all, func(i provider.Instance) bool { return i.ID == "" || i.Environment != uuid }), err
}

// stopConcurrently continues after an instance that it cannot stop.
func stopConcurrently(ctx context.Context, p provider.Provider, instances []provider.Instance) error {
	errs := make([]error, len(instances))
	slots := make(chan struct{}, maxConcurrentStops)
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

// readWanted returns what is known of the provider's process. A provider outside of the
// binary is not started unless the state has its checksum.
func readWanted(ctx context.Context, e home.Environment) (w plugin.Wanted, err error) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	env := state.Environment{Name: e.Name, UUID: e.UUID, Provider: e.Provider}
	s, err := state.Open(ctx, e.State)
	if err == nil {
		env, err = state.Read(ctx, s, (*state.View).Environment)
		err = errors.Join(err, s.Close())
	}
	if isBuiltin(e.Provider) {
		err = nil
	}
	return providerWanted(e, env), err
}
