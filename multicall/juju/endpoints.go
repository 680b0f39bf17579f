package juju

import "bijou/state"

// servicesOf returns the names of the services at the relation's endpoints.
func servicesOf(r state.Relation) (names []string) {
	for _, e := range r.Endpoints {
		names = append(names, e.Service)
	}
	return names
}
