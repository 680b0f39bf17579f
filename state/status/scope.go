package status

import (
	"errors"
	"maps"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Scope chooses what a status is about: of a service all units, or those named. The units of
// related services are read, too, since the relations name them.
type Scope func(service string) (all bool, units []string)

// selection names the records to read.
type selection struct{ prefixes, single []string }

func (s selection) read(v *state.View) (kvs []keyspace.KeyValue, err error) {
	for _, prefix := range s.prefixes {
		some, err := v.Keys().List(prefix)
		if err != nil {
			return nil, err
		}
		kvs = append(kvs, some...)
	}
	if err := v.Keys().Prefetch(s.single...); err != nil {
		return nil, err
	}
	for _, key := range s.single {
		value, there, err := v.Keys().Get(key)
		if err != nil {
			return nil, err
		}
		if there {
			kvs = append(kvs, keyspace.KeyValue{Key: key, Value: value})
		}
	}
	return kvs, nil
}

// selected are the records of units, of their agents, and which agents live.
type selected struct{ units, uniters, presences selection }

func (s *selected) addService(name string) {
	s.units.prefixes = append(s.units.prefixes, keys.ServiceUnits(name))
	s.uniters.prefixes = append(s.uniters.prefixes, keys.ServiceUniters(name))
	s.presences.prefixes = append(s.presences.prefixes, keys.Presence(state.ServiceAgents(name)))
}

func (s *selected) addUnit(name string) {
	s.units.single = append(s.units.single, keys.Unit(name))
	s.units.prefixes = append(s.units.prefixes, keys.BelowUnit(name))
	s.uniters.prefixes = append(s.uniters.prefixes, keys.Uniter(name))
	s.presences.single = append(s.presences.single, keys.Presence(state.UnitAgent(name)))
}

// selectUnits returns everything without a scope. Services and relations have been read.
func (w *input) selectUnits(scope Scope) (s selected) {
	if scope == nil {
		return selected{selection{prefixes: []string{keys.Units}}, selection{prefixes: []string{keys.Uniters}}, selection{prefixes: []string{keys.Presences}}}
	}
	shown := map[string][]string{} // no names: all units
	for service := range w.services {
		if all, units := scope(service); all || len(units) > 0 {
			shown[service] = units
		}
	}
	read := maps.Clone(shown)
	for _, r := range w.relations {
		for _, e := range r.Endpoints {
			_, concerned := shown[e.Service]
			if other := r.Other(e.Service).Service; concerned && shown[other] == nil {
				read[other] = nil
			}
		}
	}
	for service, units := range read {
		if units == nil {
			s.addService(service)
		}
		for _, unit := range units {
			s.addUnit(unit)
		}
	}
	return s
}

// maxSingleMachines are read one by one; of more, all are.
const maxSingleMachines = 16

// readMachines reads those that the units are on, with whether their agents live, or all.
func (w *input) readMachines(v *state.View, scope Scope) error {
	if scope == nil {
		return w.readAllMachines(v)
	}
	on := map[string]bool{}
	for _, u := range w.units {
		on[u.Machine] = true
	}
	delete(on, "") // of units that wait for one
	if len(on) > maxSingleMachines {
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

func (w *input) decode(v *state.View, s selection, take func(kvs []keyspace.KeyValue) error) error {
	kvs, err := s.read(v)
	if err != nil {
		return err
	}
	return take(kvs)
}
