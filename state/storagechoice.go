package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/state/charm"
)

// chooseStorage returns what storage each unit of a service gets: what its charm needs, as the
// operator's directives say.
func chooseStorage(m charm.Meta, asked map[string]charm.Directive) (map[string]charm.Directive, error) {
	chosen := map[string]charm.Directive{}
	for _, name := range slices.Sorted(maps.Keys(asked)) {
		if _, there := m.Storage[name]; !there {
			return nil, noStorageError(m, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		wants := m.Storage[name]
		d, given := asked[name]
		if !given && wants.CheckCount(name, 1) != nil {
			continue // an operator has forced the charm
		}
		d.Count = cmp.Or(d.Count, wants.Minimum)
		if given {
			d.Count = max(d.Count, 1)
		}
		var err error
		if d.Count > 0 {
			chosen[name], err = completeDirective(name, wants, d)
		}
		switch {
		case err != nil:
			return nil, err
		case d.Count < wants.Minimum:
			return nil, fmt.Errorf("each unit needs %d of storage %q at least", wants.Minimum, name)
		}
		if err := wants.CheckCount(name, d.Count); err != nil {
			return nil, err
		}
	}
	return chosen, nil
}

func noStorageError(m charm.Meta, name string) error {
	if len(m.Storage) == 0 {
		return fmt.Errorf("the charm has no storage %q: it has none", name)
	}
	return fmt.Errorf("the charm has no storage %q: it has %s", name, strings.Join(slices.Sorted(maps.Keys(m.Storage)), ", "))
}

func completeDirective(name string, wants charm.Storage, d charm.Directive) (charm.Directive, error) {
	d.Pool, d.Size = cmp.Or(d.Pool, charm.PoolRootFS), cmp.Or(d.Size, wants.Size)
	if d.Size < wants.Size {
		return d, fmt.Errorf("storage %q has to have %dM at least", name, wants.Size)
	}
	if d.Pool == charm.PoolTmpFS && d.Size == 0 {
		return d, fmt.Errorf("storage %q needs a size in pool %s: %s=%s,256M", name, d.Pool, name, d.Pool)
	}
	return d, nil
}
