package juju

import (
	"fmt"
	"maps"
	"slices"

	"bijou/state/charmsource"
	"bijou/state/constraints"
	"bijou/state/status"
)

// addNewer queries the store, in one request, for the current releases of the channels that services follow. It
// adds the releases that differ from the services' charms to s.Services, and prints a hint for each of them.
func (o *operator) addNewer(s status.Status) error {
	var names []string
	var wishes []charmsource.Wish
	for _, name := range slices.Sorted(maps.Keys(s.Services)) {
		source := s.Services[name].Source
		if source.Store == "" {
			continue
		}
		names = append(names, name)
		wishes = append(wishes, charmsource.Wish{
			ID:      source.ID,
			Have:    source.Revision,
			Channel: source.Channel,
			Base:    parseBase(source.Base),
			Arch:    constraints.HostArch(),
		})
	}
	if len(wishes) == 0 {
		return nil
	}

	return o.askCharmStore(func(st *charmStore) error {
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
