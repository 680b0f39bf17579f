// Package local is a provider without isolation, for laptops, charm authors and tests. A machine is a
// directory and the process of a machine agent on this host.
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

// idPrefix followed by a machine's ID is the ID of its instance.
const idPrefix = "local-"

// Options are the settings of the provider.
type Options struct {
	// Dir contains a directory for each machine, named by the machine's ID.
	Dir string
	// Environment is the UUID of the machines' environment.
	Environment string
	// Agent returns the command of a machine's agent. The agent must call process.Take for the machine's
	// directory, and exit on SIGTERM.
	Agent func(spec provider.Spec) (process.Detached, error)
	// Grace is how long an agent can take to exit before it is killed. 0 means 30 s.
	Grace time.Duration
}

// Provider creates machines on this host. It keeps no state in memory: all of its data is in the records in
// the machines' directories. Machine 0 has no record.
type Provider struct{ options Options }

// New returns the provider.
func New(o Options) *Provider {
	if o.Grace == 0 {
		o.Grace = 30 * time.Second
	}
	return &Provider{options: o}
}

// Capabilities reports that machines are not isolated from this host.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: "local"}, nil
}

// Start creates the machine's directory and record, and starts its agent, which outlives this process. It returns
// once the agent has taken the directory. It starts no agent if one is running already. Two simultaneous calls
// are harmless: the second agent finds the directory in use and exits. For a new machine, Start returns an error
// if this host does not meet the constraints. It writes no boot output, since no instance boots.
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
	if err := p.checkFit(dir, spec); err != nil {
		return provider.Instance{}, err
	}
	if err := osutil.MkdirAll(dir, 0o755); err != nil {
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

	// A previous call may have started the agent.
	if _, err := process.Holder(dir); err == nil {
		return started, nil
	}
	agent, err := p.startAgent(spec)
	if err != nil {
		return started, err
	}

	return started, awaitHolder(ctx, dir, agent)
}

// checkFit returns an error if this host does not meet the constraints of a new machine. A machine with a
// record is not new, even if the record cannot be read.
func (p *Provider) checkFit(dir string, spec provider.Spec) error {
	if _, err := provider.ReadRecord(dir); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// The constraint on the disk is about its size, so the free space does not matter.
	host, _, err := provider.ThisHost(p.options.Dir)
	if err != nil {
		return err
	}

	return provider.CheckFit(host, spec)
}

// startAgent starts the machine's agent as a process that outlives this one.
func (p *Provider) startAgent(spec provider.Spec) (process.Identity, error) {
	d, err := p.options.Agent(spec)
	if err != nil {
		return process.Identity{}, err
	}
	return process.Detach(d)
}

// Stop stops the machine's agent, releases the machine's mounts, and removes its directory. It returns nil if
// the machine has no record.
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

// Instances lists the machines that have a record in their directories. If a record cannot be read, the
// machine counts as one of this environment. If Instances cannot determine whether the agent is running, the
// machine counts as stopped.
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
			// The provisioner would ignore an instance without an environment, and start a second agent.
			record.Environment = p.options.Environment
		}

		_, err = process.Holder(dir)
		running := err == nil
		found = append(found, provider.Instance{
			ID:          idPrefix + e.Name(),
			Environment: record.Environment,
			Machine:     e.Name(),
			Running:     running,
		})
	}

	return found, nil
}

// Halt stops the agent that runs the machine in dir. It blocks until no process runs the machine or is about
// to run it. An agent that does not exit within the grace period is killed.
func Halt(ctx context.Context, dir string, grace time.Duration) error {
	for {
		agent, err := process.Holder(dir)
		switch {
		case err == nil:
			if err := process.Stop(ctx, agent, grace); err != nil {
				return err
			}
		case !errors.Is(err, process.ErrGone):
			return err
		}

		// A process that is about to run the machine has the lock already, but no pid file yet.
		free, err := process.IsFree(dir)
		if err != nil {
			return err
		}
		if free {
			return nil
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// awaitHolder waits until any agent has taken the directory. It returns an error if the started agent has exited
// and no process has taken the directory.
func awaitHolder(ctx context.Context, dir string, agent process.Identity) error {
	for {
		// alive is read first: an agent that is already dead cannot take the directory between the checks below.
		alive := agent.Alive()
		if _, err := process.Holder(dir); err == nil {
			return nil
		}
		if free, err := process.IsFree(dir); !alive && free && err == nil {
			return errors.New("the agent ended at once; the log has the reason: " + filepath.Join(dir, "agent.log"))
		}
		if err := backoff.Sleep(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// pollInterval is the interval between checks of a process, since its start and end cannot be watched.
const pollInterval = 10 * time.Millisecond
