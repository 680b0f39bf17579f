package juju

import "bijou/state"

func servicesOf(r state.Relation) (names []string) {
	for _, e := range r.Endpoints {
		names = append(names, e.Service)
	}
	return names
}
