package status

import (
	"errors"
	"maps"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Scope chooses what a status is about: of a service all units, or those named. Of related
// services it has what their units are to the relations.
type Scope func(service string) (all bool, units []string)

// selection names the records to read.
type selection struct{ prefixes, single []string }

// part says which units of a service are read.
type part struct {
	shown bool     // else only what its units are to relations
	units []string // nil: all
}

func (w *input) shows(service string) bool { return w.Scope == nil || w.chosen[service].shown }

// choose needs services and relations.
func (w *input) choose() map[string]part {
	chosen, related := map[string]part{}, map[string]part{}
	for service := range w.services {
		all, units := w.Scope(service)
		if !all && len(units) == 0 {
			continue
		}
		if chosen[service] = (part{true, units}); all {
			chosen[service] = part{shown: true}
		}
		for _, r := range w.relationsOf[service] {
			if w.alone {
				break
			}
			related[r.Other(service).Service] = part{shown: w.Related}
		}
	}
	maps.Copy(related, chosen)
	return related
}

func (w *input) readUnits(v *state.View) error {
	units := selection{prefixes: []string{keys.Units}}
	if w.Scope != nil {
		units.prefixes, w.chosen = nil, w.choose()
	}
	for service, p := range w.chosen {
		if p.units == nil {
			units.prefixes = append(units.prefixes, keys.ServiceUnits(service))
		}
		for _, u := range p.units {
			units.single = append(units.single, keys.Unit(u), keys.Ports(u), keys.Restored(u))
		}
	}
	return w.decode(v, units, w.decodeUnits)
}

// maxSingle units of a service, or machines, are read one by one: below the prefix of a unit's
// agent stands every member that it has met. Of more, all is read.
const maxSingle = 16

// readAgents reads what units' agents keep, which of them live, and which units lead.
func (w *input) readAgents(v *state.View) error {
	uniters, presences := selection{prefixes: []string{keys.Uniters}}, selection{prefixes: []string{leadersPrefix(), keys.Presences}}
	if w.Scope != nil {
		uniters.prefixes, presences.prefixes = nil, presences.prefixes[:1]
		for service, units := range w.unitsOf {
			w.selectAgents(&uniters, &presences, service, units)
		}
	}
	if err := w.decode(v, uniters, w.decodeUniters); err != nil {
		return err
	}
	return w.decode(v, presences, w.decodePresence)
}

func (w *input) selectAgents(uniters, presences *selection, service string, units []string) {
	if len(units) > maxSingle {
		uniters.prefixes = append(uniters.prefixes, keys.ServiceUniters(service))
		presences.prefixes = append(presences.prefixes, keys.Presence(state.ServiceAgents(service)))
		return
	}
	for _, u := range units {
		if w.shows(service) {
			uniters.single = append(uniters.single, keys.Op(u), keys.Workflow(u))
			presences.single = append(presences.single, keys.Presence(state.UnitAgent(u)))
		}
		for _, r := range w.relationsOf[service] {
			if w.shows(service) || w.shows(r.Other(service).Service) {
				uniters.single = append(uniters.single, keys.RelationState(u, r.ID))
			}
		}
	}
}

// readMachines reads those that the shown units are on, with whether their agents live, or all.
func (w *input) readMachines(v *state.View) error {
	if w.Scope == nil {
		return w.readAllMachines(v)
	}
	on := map[string]bool{}
	for _, u := range w.units {
		if w.shows(u.Service) && u.Machine != "" { // else it waits for one
			on[u.Machine] = true
		}
	}
	if len(on) > maxSingle {
		agents := selection{prefixes: []string{keys.Presence(state.MachineAgent(""))}}
		return errors.Join(w.readAllMachines(v), w.decode(v, agents, w.decodePresence))
	}
	var agents selection
	for id := range on {
		m, err := v.Machine(id)
		if errors.Is(err, state.ErrNotFound) {
			continue // removed by force
		}
		if err != nil {
			return err
		}
		w.machines[id] = m
		agents.single = append(agents.single, keys.Presence(state.MachineAgent(id)))
	}
	return w.decode(v, agents, w.decodePresence)
}

func (w *input) readAllMachines(v *state.View) error {
	machines, err := v.Machines()
	for _, m := range machines {
		w.machines[m.ID] = m
	}
	return err
}

// decode takes the records of a list at a time: they are not to be in memory all at once.
func (w *input) decode(v *state.View, s selection, take func(kvs []keyspace.KeyValue) error) error {
	for _, prefix := range s.prefixes {
		kvs, err := v.Keys().List(prefix)
		if err == nil {
			err = take(kvs)
		}
		if err != nil {
			return err
		}
	}
	var kvs []keyspace.KeyValue
	err := v.Keys().Prefetch(s.single...)
	for _, key := range s.single {
		value, there, gerr := v.Keys().Get(key)
		if err = errors.Join(err, gerr); err != nil {
			return err
		}
		if there {
			kvs = append(kvs, keyspace.KeyValue{Key: key, Value: value})
		}
	}
	return take(kvs)
}
