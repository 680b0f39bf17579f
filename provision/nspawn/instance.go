package nspawn

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state/durable"
	"bijou/state/lazyregexp"
)

// idForm matches an instance's id: it is the container's name and its folder's.
var idForm = lazyregexp.New(`\Abj[0-9a-f]{6}-[1-9][0-9]{0,8}\z`)

func (p *Provider) instanceID(machine string) string { return p.namePrefix + "-" + machine }

// recordInstance makes the machine's folder and its record, with an address of the environment's
// network, which is there then. The folder stays locked: its holder alone starts or stops the
// instance.
func (p *Provider) recordInstance(ctx context.Context, spec provider.Spec) (r provider.Record, lock *os.File, err error) {
	all, err := lockFolder(ctx, p.dir)
	if err != nil {
		return r, nil, err
	}
	defer all.Close()
	dir := filepath.Join(p.dir, p.instanceID(spec.Machine))
	r, _ = provider.ReadRecord(dir) // one that cannot be read is made anew
	r.Environment, r.Machine, r.Token = spec.Environment, spec.Machine, spec.Token
	if err := p.ensureNetwork(&r); err != nil {
		return r, nil, err
	}
	if err := durable.MkdirAll(dir, 0o700); err != nil {
		return r, nil, err
	}
	if err := r.Write(dir); err != nil {
		return r, nil, err
	}
	all.Close() // nobody waits for a boot but who wants the same machine
	lock, err = lockFolder(ctx, dir)
	return r, lock, err
}

// fs.ErrNotExist: there is none. An instance runs once it has come up: what may be no more than a
// shell is not to be taken for a machine. Where its record cannot be read it belongs to the machine
// that it is named after, of this environment.
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
		ID: id, Environment: r.Environment, Machine: r.Machine, Running: runs && p.hasBooted(id), Private: r.Address, Public: r.Address,
	}, nil
}

func (p *Provider) listInstances() ([]provider.Instance, error) {
	entries, err := os.ReadDir(p.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var found []provider.Instance
	for _, e := range entries {
		if !idForm.MatchString(e.Name()) {
			continue
		}
		i, err := p.readInstance(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // nothing of it has been made yet
		} else if err != nil {
			return nil, err
		}
		found = append(found, i)
	}
	slices.SortFunc(found, func(a, b provider.Instance) int {
		return len(a.Machine)*1000 + strings.Compare(a.Machine, b.Machine) - len(b.Machine)*1000
	})
	return found, nil
}
