// Package local is the provider for which a machine is a folder and a machine agent's process on
// this host: no isolation, for laptops, charm authors and tests.
//
// It imports provision/provider, provision/local/process and state/osutil only;
// multicall chooses it.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"bijou/provision/local/process"
	"bijou/provision/provider"
	"bijou/state/backoff"
	"bijou/state/osutil"
	"bijou/state/unitdir"
)

// idPrefix makes a machine's id an instance's.
const idPrefix = "local-"

// Options configure where the machines live and what runs there.
type Options struct {
	// Dir holds a folder for each machine, named by its id.
	Dir string
	// Environment is the uuid of the environment that they belong to.
	Environment string
	// Agent is how the agent of a machine is called. It must process.Take the
	// machine's folder, and end on SIGTERM.
	Agent func(spec provider.Spec) (process.Detached, error)
	// Grace is how long an agent may take to end before it is killed; 0: 30 s.
	Grace time.Duration
}

// Provider makes machines of this host. It keeps nothing in memory: all that it
// knows is in the records of their folders; machine 0's has none.
type Provider struct{ options Options }

// New returns the provider.
func New(o Options) *Provider {
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	return &Provider{options: o}
}

// Capabilities reports that machines share this host.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: "local"}, nil
}

// Start makes the machine's directory and starts its agent, which outlives this process. Two starts at once
// are harmless: the second agent finds the directory taken and ends.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, _ io.Writer) (_ provider.Instance, err error) {
	if err := provider.CheckMachine(spec.Machine); err != nil {
		return provider.Instance{}, err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start machine %s: %w", spec.Machine, err)
		}
	}()

	dir := filepath.Join(p.options.Dir, spec.Machine)
	err = p.checkFit(dir, spec)
	if err == nil {
		err = osutil.MkdirAll(dir, 0o755)
	}
	if err != nil {
		return provider.Instance{}, err
	}

	err = provider.Record{Environment: spec.Environment, Machine: spec.Machine, Token: spec.Token}.Write(dir)
	if err != nil {
		return provider.Instance{}, err
	}

	started := provider.Instance{
		ID:          idPrefix + spec.Machine,
		Environment: spec.Environment,
		Machine:     spec.Machine,
		Running:     true,
	}

	if _, err := process.Holder(dir); err == nil {
		return started, nil
	}
	agent, err := p.startAgent(spec)
	if err != nil {
		return started, err
	}

	return started, awaitHolder(ctx, dir, agent)
}

// checkFit returns an error if this host cannot have a new machine as spec wants it. A machine with a
// record is not new, even if the record cannot be read.
func (p *Provider) checkFit(dir string, spec provider.Spec) error {
	if _, err := provider.ReadRecord(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	host, _, err := provider.ThisHost(p.options.Dir)
	if err != nil {
		return err
	}

	return provider.CheckFit(host, spec)
}

func (p *Provider) startAgent(spec provider.Spec) (process.Identity, error) {
	d, err := p.options.Agent(spec)
	if err != nil {
		return process.Identity{}, err
	}
	return process.Detach(d)
}

// Stop ends the machine's agent and removes its folder.
func (p *Provider) Stop(ctx context.Context, id string) error {
	machine := strings.TrimPrefix(id, idPrefix)
	if err := provider.CheckMachine(machine); err != nil {
		return err
	}

	dir := filepath.Join(p.options.Dir, machine)
	if _, err := provider.ReadRecord(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := Halt(ctx, dir, p.options.Grace); err != nil {
		return fmt.Errorf("cannot stop machine %s: %w", machine, err)
	}

	err := unitdir.ReleaseMachine(dir)
	if err != nil {
		return fmt.Errorf("cannot remove machine %s: %w", machine, err)
	}
	if err := provider.RemoveFolder(dir); err != nil {
		return fmt.Errorf("cannot remove machine %s: %w", machine, err)
	}

	return nil
}

// Instances lists the directories of machines that have a record. If a record cannot be read, the machine
// counts as one of this environment.
func (p *Provider) Instances(context.Context) ([]provider.Instance, error) {
	entries, err := os.ReadDir(p.options.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("cannot list machines: %w", err)
	}
	var found []provider.Instance

	for _, e := range entries {
		if !e.IsDir() || provider.CheckMachine(e.Name()) != nil {
			continue
		}

		dir := filepath.Join(p.options.Dir, e.Name())
		record, err := provider.ReadRecord(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			record.Environment = p.options.Environment
		}

		_, err = process.Holder(dir)
		running := err == nil // where that cannot be told it counts as stopped
		found = append(found, provider.Instance{
			ID:          idPrefix + e.Name(),
			Environment: record.Environment,
			Machine:     e.Name(),
			Running:     running,
		})
	}

	return found, nil
}

// Halt ends the agent of the machine's folder and blocks until no process runs the machine, not
// even one that was just coming up.
func Halt(ctx context.Context, dir string, grace time.Duration) error {
	for {
		if agent, err := process.Holder(dir); err == nil {
			if err := process.Stop(ctx, agent, grace); err != nil {
				return err
			}
		} else if !errors.Is(err, process.ErrGone) {
			return err
		}

		free, err := process.IsFree(dir)
		if err != nil || free {
			return err
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// awaitHolder waits until an agent has taken the directory. It returns an error if the agent that was
// started ends without that.
func awaitHolder(ctx context.Context, dir string, agent process.Identity) error {
	for {
		alive := agent.Alive()
		if _, err := process.Holder(dir); err == nil {
			return nil
		}
		if free, err := process.IsFree(dir); !alive && free && err == nil {
			return errors.New("its agent has ended at once; its log says why: " + filepath.Join(dir, "agent.log"))
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// pollInterval is for processes, of whose beginning and end nothing tells.
const pollInterval = 10 * time.Millisecond
