// Package nspawn is the provider for which a machine is a system container of
// this host: its own systemd, processes and addresses, and an overlay over one
// tree of files that all of them share. It runs as root.
//
// Everything of an environment is in its folder, below nspawn/: a folder a machine, and the record
// of its network. Nothing is kept in memory, and no container needs the process that started it: it
// is found by its control groups, or as systemd's unit where systemd manages the host.
//
// It is no provisioner, and knows nothing of what is in the state. It imports
// provision/provider and leaves of state only; multicall chooses it.
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

// Provider makes containers for one environment.
type Provider struct {
	env provider.Environment
	dir string // of all that it keeps: DIR/nspawn
	// namePrefix begins the names of links, groups and containers on this host, which
	// are 15 bytes at most: different for each environment, and each copy of one.
	namePrefix string
	manager    containerManager
}

// settings returns the names of the settings. In the environment's configuration they begin with "nspawn.".
func settings() []string {
	return []string{"apt-repository", provider.ConfinedSetting, "network", "packages", "storage", "tree"}
}

// CheckSettings refuses settings that somebody gives and the provider does not have, and mirrors that are none.
func CheckSettings(config map[string]string) error {
	if err := checkConfined(config); err != nil {
		return err
	}

	for _, key := range slices.Sorted(maps.Keys(config)) {
		if series, ok := strings.CutPrefix(key, "mirror."); ok && series != "" {
			if err := checkMirror(series, config[key]); err != nil && config[key] != "" {
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

// New makes the provider of an environment. It touches nothing, and ignores a setting that it does
// not know.
func New(e provider.Environment) (*Provider, error) {
	p := &Provider{
		env:        e,
		dir:        filepath.Join(e.Dir, "nspawn"),
		namePrefix: "bj" + osutil.Digest([]byte(e.UUID + "\x00" + e.Dir))[:6],
	}

	p.manager = newCgroupManager(p.namePrefix)
	if _, err := os.Lstat("/run/systemd/system"); err == nil { // as sd_booted(3)
		p.manager = systemdManager{}
	}
	return p, nil
}

// Capabilities reports that machines are containers of this host.
func (*Provider) Capabilities(context.Context) (provider.Capabilities, error) {
	return provider.Capabilities{Name: Name, Isolated: true}, nil
}

// Start boots the machine's container, and returns once its systemd has come up; the agent follows by
// itself. It goes on where an interrupted Start stopped.
func (p *Provider) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (_ provider.Instance, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot start machine %s: %w", spec.Machine, withAdvice(err))
		}
	}()

	if err := provider.CheckMachine(spec.Machine); err != nil {
		return provider.Instance{}, err
	}

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
	if l.record, l.lock, err = p.recordInstance(ctx, spec); err != nil {
		return provider.Instance{}, err
	}
	defer l.lock.Close()

	if i, err := p.readInstance(id); err != nil || i.Running { // another Start was quicker
		return i, err
	}
	if err := p.bootContainer(ctx, l); err != nil {
		return provider.Instance{}, err
	}

	return p.readInstance(id)
}

// Stop ends the container and removes its files; with the environment's last one
// its network goes, too.
func (p *Provider) Stop(ctx context.Context, id string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot stop instance %q: %w", id, err)
		}
	}()

	if !idForm().MatchString(id) {
		return errors.New("that is not an instance of this provider")
	}

	dir := filepath.Join(p.dir, id)
	if _, err := os.Lstat(dir); errors.Is(err, os.ErrNotExist) {
		return p.sweepShared(ctx) // of a Stop that was cut off
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

// sweepShared removes the bridge, the control groups and the directory that all instances share, once there
// are no instances.
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
	if err != nil || len(left) > 0 {
		return err
	}
	if err := p.removeBridge(); err != nil {
		return err
	}
	if err := p.manager.close(); err != nil {
		return err
	}

	return os.RemoveAll(p.dir)
}

// Instances lists the environment's containers, running or not, by machine.
func (p *Provider) Instances(context.Context) ([]provider.Instance, error) {
	found, err := p.listInstances()
	if err != nil {
		return found, fmt.Errorf("cannot list instances: %w", err)
	}

	return found, nil
}

func withAdvice(err error) error {
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		return fmt.Errorf("%w: free some space, then retry", err)
	}
	return err
}

// containerManager holds a container's processes together, so that they are found and ended whoever
// has started them, and knows of nothing but their instance's id.
type containerManager interface {
	// start starts the command, which outlives this process. It returns once the
	// manager knows of it, with the limits that cannot be enforced here.
	start(ctx context.Context, id string, c command) (unlimited []string, err error)
	// isRunning reports whether any process of it lives.
	isRunning(id string) (bool, error)
	// kill kills all of its processes, and blocks until there are none.
	kill(ctx context.Context, id string) error
	// close frees what the manager has beside its containers.
	close() error
}

// command describes a container to start.
type command struct {
	args   []string             // of boot.sh, behind the groups
	log    string               // where it prints
	lock   *os.File             // kept until the container has taken its place
	limits constraints.Hardware // of which memory and cores are bounded; 0 is all
}

// pollInterval is how often is looked for what nobody tells of, as the end of a process.
const pollInterval = 10 * time.Millisecond

// idForm matches an instance's id: it is the container's name and its folder's.
var idForm = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\Abj[0-9a-f]{6}-[1-9][0-9]{0,8}\z`)
})

func (p *Provider) instanceID(machine string) string { return p.namePrefix + "-" + machine }

// recordInstance makes the machine's directory and its record, with an address of the environment's
// network, which it makes if necessary. The directory is locked when it returns. Only the holder of that
// lock may start or stop the instance.
func (p *Provider) recordInstance(
	ctx context.Context,
	spec provider.Spec,
) (r provider.Record, lock *os.File, err error) {
	all, err := osutil.LockDir(ctx, p.dir)
	if err != nil {
		return r, nil, err
	}
	defer all.Close()

	dir := filepath.Join(p.dir, p.instanceID(spec.Machine))
	r, _ = provider.ReadRecord(dir) // one that cannot be read is made anew
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

	all.Close() // nobody waits for a boot but who wants the same machine
	lock, err = osutil.LockDir(ctx, dir)
	return r, lock, err
}

// readInstance reads an instance. It returns fs.ErrNotExist if there is none. An instance counts as running
// once it has booted, since before that it may be only a shell. If its record cannot be read, it counts as
// the machine of this environment that it is named after.
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

// listInstances returns this environment's instances, in the order of their machines' numbers.
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
			continue // nothing of it has been made yet
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
