package juju

import (
	"maps"
	"slices"

	"bijou/state/charm"
)

// parseDirectives parses directives for storage, and returns them by the names of the storage. It returns an
// error for a name that is given twice.
func parseDirectives(words []string) (map[string]charm.Directive, error) {
	directives := map[string]charm.Directive{}
	for _, word := range words {
		name, directive, err := charm.ParseDirective(word)
		if err != nil {
			return nil, err
		}
		if _, twice := directives[name]; twice {
			return nil, charm.Invalidf("storage %q is given twice", name)
		}
		directives[name] = directive
	}

	return directives, nil
}

// noteSizes prints which sizes of storage are not enforced.
func (d *deployment) noteSizes() {
	for _, name := range slices.Sorted(maps.Keys(d.storage)) {
		// A tmpfs enforces its size.
		if s := d.storage[name]; s.Size > 0 && s.Pool != charm.PoolTmpFS {
			d.o.note("storage %q: pool %s cannot enforce the size of %dM", name, s.Pool, s.Size)
		}
	}
}
