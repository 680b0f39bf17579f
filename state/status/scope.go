package status

import (
	"errors"
	"maps"
	"path"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Globs maps patterns of names, as for [path.Match], to whether they have matched a name.
type Globs map[string]bool

// NewGlobs returns Globs for the patterns, none of which has matched a name yet.
func NewGlobs(patterns []string) Globs {
	g := Globs{}
	for _, p := range patterns {
		g[p] = false
	}
	return g
}

// Match reports whether a pattern matches the name. It records all patterns that match.
func (g Globs) Match(name string) (matches bool) {
	for pattern := range g {
		// An invalid pattern matches nothing.
		if ok, _ := path.Match(pattern, name); ok {
			g[pattern] = true
			matches = true
		}
	}
	return matches
}

// Unmatched returns the given patterns that have not matched a name.
func (g Globs) Unmatched(patterns []string) (unmatched []string) {
	for _, p := range patterns {
		hasMatched := g[p]
		if !hasMatched {
			unmatched = append(unmatched, p)
		}
	}
	return unmatched
}

// selection names the records to read: all below the prefixes, and single keys.
type selection struct{ prefixes, single []string }

// part selects the units of a service that are read.
type part struct {
	shown bool     // show the service; otherwise its units are only shown in relations
	whole bool     // keep all units that are read; otherwise only those that a pattern matches
	units []string // the units to read; nil means all
}

// shows reports whether the status shows the service itself, and not only its units in relations.
func (w *input) shows(service string) bool { return w.chosen == nil || w.chosen[service].shown }

// choosePart returns the part of a service that must be read for the patterns. ok is false if no pattern can
// match the service or a unit of it.
func (w *input) choosePart(service string) (p part, ok bool) {
	p = part{shown: true, whole: w.globs.Match(service)}
	needsAllUnits := p.whole
	for pattern := range w.globs {
		servicePattern, number, isUnitPattern := strings.Cut(pattern, "/")
		// An invalid pattern matches nothing.
		matches, _ := path.Match(servicePattern, service)
		if !matches || !isUnitPattern {
			continue
		}

		if unit := service + "/" + number; charm.IsUnit(unit) {
			p.units = append(p.units, unit)
		} else {
			// The number is a pattern, as in web/*, so any unit can match.
			needsAllUnits = true
		}
	}

	ok = needsAllUnits || len(p.units) > 0
	if needsAllUnits {
		p.units = nil // means all
	}
	return p, ok
}

// readUnits reads the units that the patterns select. Unless w.alone is set, it then reads all units of services that
// are related to the selected services. It sets w.chosen to the part of each service that it has read. Without
// patterns, it reads all units instead, and w.chosen stays nil.
func (w *input) readUnits(v *state.View) error {
	if len(w.Globs) == 0 {
		return w.readSelection(v, selection{prefixes: []string{keys.Units}}, w.decodeUnits)
	}

	w.chosen = map[string]part{}
	for service := range w.named {
		if p, ok := w.choosePart(service); ok {
			w.chosen[service] = p
		}
	}

	if err := w.readParts(v, w.chosen); err != nil {
		return err
	}

	// A service without selected units is shown only if a pattern matches its own name. Such a service can be without a
	// record, and is then not shown either.
	maps.DeleteFunc(w.chosen, func(service string, p part) bool {
		_, hasRecord := w.services[service]
		isNamed := p.whole && hasRecord
		return !isNamed && len(w.unitsOf[service]) == 0
	})

	if w.alone {
		return nil
	}

	related := map[string]part{}
	for service := range w.chosen {
		for _, r := range w.relationsOf[service] {
			other := r.Other(service).Service
			isSelected := w.chosen[other].shown // all services that are chosen until here are shown
			if !isSelected {
				// Without w.Related, the status shows the units of other only in their relations.
				related[other] = part{shown: w.Related, whole: true}
			}
		}
	}

	maps.Copy(w.chosen, related)
	return w.readParts(v, related)
}

// readParts reads the units of the given parts of services.
func (w *input) readParts(v *state.View, parts map[string]part) error {
	var units selection
	for service, p := range parts {
		if p.units == nil {
			units.prefixes = append(units.prefixes, keys.ServiceUnits(service))
		}
		for _, u := range p.units {
			units.single = append(units.single, keys.Unit(u), keys.Ports(u), keys.Restored(u))
		}
	}

	return w.readSelection(v, units, w.decodeUnits)
}

// maxSingle is how many units of a service, or machines, are read one by one. If there are more, their whole
// lists are read. The list for a unit's agent is long, since it has a record of every member of the unit's
// relations.
const maxSingle = 16

// readAgents reads the records and presence of units' agents that selectAgents selects, and the leaders of all
// services. Without patterns, it reads everything of all units' agents, and the presence of machines' agents.
func (w *input) readAgents(v *state.View) error {
	uniters := selection{}
	presences := selection{prefixes: []string{leadersPrefix()}}
	if w.chosen == nil {
		uniters.prefixes = append(uniters.prefixes, keys.Uniters)
		presences.prefixes = append(presences.prefixes, keys.Presences)
	} else {
		for service, units := range w.unitsOf {
			w.selectAgents(&uniters, &presences, service, units)
		}
	}

	if err := w.readSelection(v, uniters, w.decodeUniters); err != nil {
		return err
	}
	return w.readSelection(v, presences, w.decodePresence)
}

// selectAgents adds to the selections the keys that the agents of a service's units write. For more than
// maxSingle units, it adds whole prefixes. Otherwise it adds single keys, and only those about relations with
// shown services if the service itself is not shown.
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

// readMachines reads the machines of the shown units, and whether the machines' agents are present. Without
// patterns, it reads all machines.
func (w *input) readMachines(v *state.View) error {
	if w.chosen == nil {
		// readAgents has read the presence of all agents.
		return w.readAllMachines(v)
	}

	shown := map[string]bool{}
	for _, u := range w.units {
		// A unit without a machine still waits for one.
		if w.shows(u.Service) && u.Machine != "" {
			shown[u.Machine] = true
		}
	}

	if len(shown) > maxSingle {
		if err := w.readAllMachines(v); err != nil {
			return err
		}
		maps.DeleteFunc(w.machines, func(id string, _ state.Machine) bool { return !shown[id] })

		// Without an id, MachineAgent returns the prefix of the names of all machines' agents.
		agents := selection{prefixes: []string{keys.Presence(state.MachineAgent(""))}}
		return w.readSelection(v, agents, w.decodePresence)
	}

	var agents selection
	for id := range shown {
		m, err := v.Machine(id)
		if errors.Is(err, state.ErrNotFound) || v.Keys().Skips(err) {
			// findMissing adds the machine to the damage.
			continue
		}
		if err != nil {
			return err
		}

		w.machines[id] = m
		agents.single = append(agents.single, keys.Presence(state.MachineAgent(id)))
	}

	return w.readSelection(v, agents, w.decodePresence)
}

// readAllMachines reads all machines.
func (w *input) readAllMachines(v *state.View) error {
	machines, err := v.Machines()
	if err != nil {
		return err
	}

	for _, m := range machines {
		w.machines[m.ID] = m
	}
	return nil
}

// readSelection reads the records below each prefix, and then the single records. It calls decode for the
// records of each prefix and for all single records together. It reads one prefix at a time, since all
// records together can be too large for memory.
func (w *input) readSelection(
	v *state.View,
	s selection,
	decode func(v *state.View, kvs []keyspace.KeyValue) error,
) error {
	for _, prefix := range s.prefixes {
		kvs, err := v.Keys().List(prefix)
		if err != nil {
			return err
		}
		if err := decode(v, kvs); err != nil {
			return err
		}
	}

	// With this call, a distant store sends all single records in one round trip.
	if err := v.Keys().Prefetch(keyspace.Exactly(s.single...)); err != nil {
		return err
	}

	var kvs []keyspace.KeyValue
	for _, key := range s.single {
		value, exists, err := v.Keys().Get(key)
		if err != nil {
			return err
		}

		if exists {
			kvs = append(kvs, keyspace.KeyValue{Key: key, Value: value})
		}
	}

	return decode(v, kvs)
}
