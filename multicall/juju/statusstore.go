package juju

import (
	"fmt"
	"maps"
	"slices"

	"bijou/state"
	"bijou/state/charmsource"
	"bijou/state/status"
)

// addNewer queries the store, for all services together, for the current releases of the channels that services
// follow. For each release that differs from the service's charm, it sets Newer in s.Services and prints a hint. If
// the store's answer for a service is an error, it prints a warning.
func (o *operator) addNewer(s status.Status) error {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		if s.Services[name].Source.Store != "" {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}

	return o.askCharmStore(func(st *charmStore) error {
		wishes, err := st.wishesFor(names)
		if err != nil {
			return err
		}

		// The answers have the order of the wishes, and of names.
		answers, err := st.Resolve(o.ctx, wishes...)
		if err != nil {
			return err
		}

		for i, name := range names {
			if answers[i].Err != nil {
				o.note("warning: cannot find out if application %q has a newer release: %v", name, answers[i].Err)
				continue
			}

			// A channel can also have returned to a lower revision.
			service := s.Services[name]
			if r := answers[i].Release; r.Revision != service.Source.Revision {
				service.Newer = fmt.Sprintf("ch:%s/%s/%s-%d", wishes[i].Arch, service.Series, r.Name, r.Revision)
				s.Services[name] = service
				o.note("hint: application %q can be upgraded to revision %d of %s, from %d: juju refresh %s",
					name, r.Revision, describeSource(service), service.Source.Revision, name)
			}
		}
		return nil
	})
}

// describeSource returns the name and the channel of the service's charm in the store.
func describeSource(s status.Service) string {
	return s.Source.Name + " in channel " + s.Source.Channel
}

// wishesFor returns a wish for the current release of the charm of each named service, as refresh without options would
// ask for it. The charms must come from the store.
func (st *charmStore) wishesFor(names []string) ([]charmsource.Wish, error) {
	return state.Read(st.o.ctx, st.state, func(v *state.View) (wishes []charmsource.Wish, err error) {
		for _, name := range names {
			service, err := v.Service(name)
			// Even a service that was removed in the meantime gets a wish, so that each name has one.
			if state.IgnoreNotFound(err) != nil {
				return nil, err
			}

			u := &upgrade{service: service}
			wishes = append(wishes, u.wish(st, service.Origin.Name, service.Origin.Channel))
		}
		return wishes, nil
	})
}
