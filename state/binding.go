package state

import (
	"cmp"
	"slices"
)

// Bindings lists what can be bound to a network in a service whose units run the charm
// of that URL (empty: the service's): the charm's relations and extra bindings, sorted.
func (v *View) Bindings(service, charmURL string) ([]string, error) {
	s, err := v.Service(service)
	if err != nil {
		return nil, err
	}
	ch, err := v.Charm(cmp.Or(charmURL, s.Charm))
	if err != nil {
		return nil, err
	}
	names := slices.Clone(ch.Meta.ExtraBindings)
	for _, r := range ch.Meta.Relations() {
		names = append(names, r.Name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil
}
