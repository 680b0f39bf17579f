// Package nspawn is a provider that runs each machine as a system container on this host. A container has its
// own systemd, processes and address. Its files are an overlay over a directory tree that all containers of a
// series share. The provider must run as root.
//
// All files of an environment are in the subdirectory nspawn/ of its directory: a directory for each machine,
// and the record of its network. The provider keeps no state in memory, and containers do not depend on the
// process that has started them. The provider finds a container by its control groups or, on hosts with
// systemd, by its unit.
//
// The package does not use the state.
package nspawn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"bijou/provision/provider"
	"bijou/state/constraints"
	"bijou/state/osutil"
)

// Name is the provider's name.
const Name = "nspawn"

// Provider creates containers for one environment.
type Provider struct {
	env provider.Environment
	dir string // the provider's directory, nspawn/ in the environment's directory
	// namePrefix begins the names of network links, control groups and containers on this host. It differs
	// for each environment and each copy of an environment, and is short, since the name of a link has at
	// most 15 bytes.
	namePrefix string
	manager    containerManager
}

// settings returns the names of the settings. In the environment's configuration, they have the prefix
// "nspawn.".
func settings() []string {
	return []string{"apt-repository", provider.ConfinedSetting, "network", "packages", "storage", "tree"}
}

// CheckSettings returns an error if config has a setting that the provider does not have, an invalid mirror,
// or an invalid value of the setting that confines containers. An empty mirror is valid, and counts as unset.
func CheckSettings(config map[string]string) error {
	if err := checkConfined(config); err != nil {
		return err
	}

	for _, key := range slices.Sorted(maps.Keys(config)) {
		series, isMirror := strings.CutPrefix(key, "mirror.")
		if isMirror && series != "" {
			if config[key] == "" {
				continue
			}
			if err := checkMirror(series, config[key]); err != nil {
				return err
			}
			continue
		}

		if !slices.Contains(settings(), key) && !strings.HasPrefix(key, "tree.") {
			return fmt.Errorf("%s has no setting %q: it has %s, tree.SERIES, and mirror.SERIES",
				Name, key, strings.Join(settings(), ", "))
		}
	}

	return nil
}

// New returns the provider for an environment. It changes nothing, and ignores settings that it does not
// know. The error is always nil.
func New(e provider.Environment) (*Provider, error) {
	p := &Provider{
		env:        e,
		dir:        filepath.Join(e.Dir, "nspawn"),
		namePrefix: "bj" + osutil.Digest([]byte(e.UUID + "\x00" + e.Dir))[:6],
	}

	p.manager = newCgroupManager(p.namePrefix)
	// sd_booted(3) recognizes a host with systemd in the same way.
	if _, err := os.Lstat("/run/systemd/system"); err == nil {
		p.manager = systemdManager{}
	}
	return p, nil
}

// Capabilities reports that machines are isolated containers on this host.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true}, nil
}

// Start boots the machine's container, and returns once the container's systemd is up. systemd then starts
// the agent. Start does not change a container that is already running. If Start was interrupted, the next call
// continues its work.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (_ provider.Instance, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start machine %s: %w", spec.Machine, withAdvice(err))
		}
	}()

	if err := provider.CheckMachine(spec.Machine); err != nil {
		return provider.Instance{}, err
	}

	// A running container needs no lock. An error is ignored, since the instance is read again below, under its
	// lock.
	id := p.instanceID(spec.Machine)
	if i, err := p.readInstance(id); err == nil && i.Running {
		return i, nil
	}

	if err := checkHost(); err != nil {
		return provider.Instance{}, err
	}
	if err := p.checkNewMachine(spec); err != nil {
		return provider.Instance{}, err
	}
	tree, err := p.ensureTree(ctx, spec.Machine, spec.Series, boot)
	if err != nil {
		return provider.Instance{}, err
	}

	l := launch{provider: p, spec: spec, tree: tree, boot: boot}
	if err := l.resolveAgent(); err != nil {
		return provider.Instance{}, err
	}
	l.record, l.lock, err = p.recordInstance(ctx, spec)
	if err != nil {
		return provider.Instance{}, err
	}
	defer l.lock.Close()

	// Another Start may have booted the container before this Start got the lock.
	i, err := p.readInstance(id)
	if err != nil {
		return i, err
	}
	if i.Running {
		return i, nil
	}
	if err := p.bootContainer(ctx, l); err != nil {
		return provider.Instance{}, err
	}

	return p.readInstance(id)
}

// Stop stops the container and removes its files. After the environment's last container, it also removes
// the files and the network that all containers share. It returns nil if the container does not exist.
func (p *Provider) Stop(ctx context.Context, id string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot stop instance %q: %w", id, err)
		}
	}()

	if !idForm().MatchString(id) {
		return errors.New("an instance of this provider cannot have this ID")
	}

	dir := filepath.Join(p.dir, id)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		// An earlier Stop may have been interrupted before it removed the shared files.
		return p.sweepShared(ctx)
	}
	lock, err := osutil.LockDir(ctx, dir)
	if err != nil {
		return err
	}
	defer lock.Close()

	if err := p.endContainer(ctx, id); err != nil {
		return err
	}
	if err := provider.RemoveFolder(dir); err != nil {
		return err
	}

	return p.sweepShared(ctx)
}

// sweepShared removes the bridge, the control groups and the directory that all containers share, if there
// are no containers.
func (p *Provider) sweepShared(ctx context.Context) error {
	if _, err := os.Lstat(p.dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := osutil.LockDir(ctx, p.dir)
	if err != nil {
		return err
	}
	defer lock.Close()

	left, err := p.listInstances()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return nil
	}
	if err := p.removeBridge(); err != nil {
		return err
	}
	if err := p.manager.close(); err != nil { // removes the shared control groups
		return err
	}

	return os.RemoveAll(p.dir)
}

// Instances lists the environment's containers, running or stopped, in the order of their machines.
func (p *Provider) Instances(context.Context) ([]provider.Instance, error) {
	found, err := p.listInstances()
	if err != nil {
		return found, fmt.Errorf("cannot list instances: %w", err)
	}

	return found, nil
}

// withAdvice adds advice to the error of a full disk. It returns other errors unchanged.
func withAdvice(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space, then retry", err)
	}
	return err
}

// containerManager groups a container's processes, so that any process can find and kill them. It identifies
// a container by the ID of its instance.
type containerManager interface {
	// start starts the command, which outlives this process. It returns once the container is in its group
	// or unit. unlimited lists the limits that cannot be enforced on this host.
	start(ctx context.Context, id string, c command) (unlimited []string, err error)
	// isRunning reports whether any process of the container is running.
	isRunning(id string) (bool, error)
	// kill kills all processes of the container, and blocks until all have ended. It returns nil if the
	// container has no processes.
	kill(ctx context.Context, id string) error
	// close removes the control groups that all containers share. No container may be running.
	close() error
}

// command describes a container to start.
type command struct {
	args   []string             // the arguments of boot.sh after the control groups
	log    string               // the file for the output
	lock   *os.File             // boot.sh inherits the lock, and releases it when isRunning can find the container
	limits constraints.Hardware // only Mem and CPUCores are enforced; 0 means no limit
}

// pollInterval is the interval between checks for events that cannot be watched, such as the end of a
// process.
const pollInterval = 10 * time.Millisecond

// idForm matches an instance's ID, which is the name of its container and directory.
var idForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\Abj[0-9a-f]{6}-[1-9][0-9]{0,8}\z`)
})

// instanceID returns the ID of a machine's instance, which also names its container and directory.
func (p *Provider) instanceID(machine string) string { return p.namePrefix + "-" + machine }

// recordInstance creates the machine's directory and record, with an address in the environment's network. It
// creates the network if necessary. It returns the lock on the directory. Only the holder of that lock may
// start or stop the instance.
func (p *Provider) recordInstance(
	ctx context.Context,
	spec provider.Spec,
) (r provider.Record, lock *os.File, err error) {
	sharedLock, err := osutil.LockDir(ctx, p.dir)
	if err != nil {
		return r, nil, err
	}
	defer sharedLock.Close()

	dir := filepath.Join(p.dir, p.instanceID(spec.Machine))
	// If the record exists, it has the machine's address. A record that cannot be read is replaced.
	r, _ = provider.ReadRecord(dir)
	r.Environment = spec.Environment
	r.Machine = spec.Machine
	r.Token = spec.Token
	if err := p.ensureNetwork(&r); err != nil {
		return r, nil, err
	}

	if err := osutil.MkdirAll(dir, 0o700); err != nil {
		return r, nil, err
	}
	if err := r.Write(dir); err != nil {
		return r, nil, err
	}

	// Release the shared lock before waiting for the instance's lock, so that other machines can start.
	sharedLock.Close() // the deferred call then has no effect
	lock, err = osutil.LockDir(ctx, dir)
	return r, lock, err
}

// readInstance reads an instance. It returns fs.ErrNotExist if the instance has no record. An instance counts
// as running only after it has booted. Before that, its only process may be a shell. An instance whose record
// cannot be read counts as one of this environment, and of the machine in its ID.
func (p *Provider) readInstance(id string) (provider.Instance, error) {
	r, err := provider.ReadRecord(filepath.Join(p.dir, id))
	if errors.Is(err, fs.ErrNotExist) {
		return provider.Instance{}, err
	}

	if err != nil {
		_, machine, _ := strings.Cut(id, "-")
		r = provider.Record{Environment: p.env.UUID, Machine: machine}
	}

	runs, err := p.manager.isRunning(id)
	if err != nil {
		return provider.Instance{}, err
	}

	return provider.Instance{
		ID:          id,
		Environment: r.Environment,
		Machine:     r.Machine,
		Running:     runs && p.hasBooted(id),
		Private:     r.Address,
		Public:      r.Address,
	}, nil
}

// listInstances returns the instances that have a record, in the order of their machines' numbers.
func (p *Provider) listInstances() ([]provider.Instance, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}

	var found []provider.Instance
	for _, e := range entries {
		if !idForm().MatchString(e.Name()) {
			continue
		}

		i, err := p.readInstance(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			// The record has not been written yet.
			continue
		}
		if err != nil {
			return nil, err
		}
		found = append(found, i)
	}

	// A number with fewer digits is smaller.
	slices.SortFunc(found, func(a, b provider.Instance) int {
		return cmp.Or(cmp.Compare(len(a.Machine), len(b.Machine)), strings.Compare(a.Machine, b.Machine))
	})
	return found, nil
}
