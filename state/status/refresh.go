package status

import (
	"maps"
	"path"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
)

// Refresh updates a status of the whole environment after changes in the scope [state.WatchAll]. After changes of
// units it reads only these units again, and returns their names. After any other change that the status shows, it
// reads everything, and all is true. It updates the version of a service's workload, which units set, only if all
// is true.
func (s *Status) Refresh(v *state.View, o Options, changes []state.KeyChange) (units []string, all bool, err error) {
	units, all = unitsToRead(changes)
	if all {
		*s, err = Read(v, o)
		return nil, true, err
	}
	if len(units) == 0 {
		return nil, false, nil
	}

	o.Globs = units
	// The units of related services are in the status already.
	o.alone = true
	read, err := Read(v, o)
	if err != nil {
		return units, false, err
	}

	s.merge(read, units)
	return units, false, nil
}

// merge replaces the named units, also in their relations, with those of the newly read status. It removes named units
// that the newly read status does not have. It also takes over the machines that were read.
func (s *Status) merge(read Status, units []string) {
	maps.Copy(s.Machines, read.Machines)

	for _, name := range units {
		service := path.Dir(name) // mysql for mysql/0
		replaceEntry(s.Services[service].Units, read.Services[service].Units, name)

		for id, r := range s.Relations {
			end, ok := r.Services[service]
			if !ok {
				continue
			}

			replaceEntry(end.Units, read.Relations[id].Services[service].Units, name)
			end.State = WorstRelation(end.Units)
			r.Services[service] = end
		}
	}
}

// replaceEntry copies the named entry from the second map to the first. If the second map has no such entry,
// it deletes the entry in the first. It does nothing if the first map is nil, as for a service that the
// status does not have.
func replaceEntry[T any](to, from map[string]T, name string) {
	if entry, ok := from[name]; ok && to != nil {
		to[name] = entry
		return
	}
	delete(to, name)
}

// unitsToRead returns the units that must be read again after the changes, sorted. all is true if everything must
// be read again. The caller must then ignore the units.
func unitsToRead(changes []state.KeyChange) (units []string, all bool) {
	for _, c := range changes {
		// A key begins with the word for its kind of record, such as units. Package keys has most of these words
		// with a slash at the end.
		kind, rest, _ := strings.Cut(c.Key, "/")
		parts := strings.Split(rest, "/")

		switch kind + "/" {
		case keys.Units:
			// A shorter key names no unit.
			all = all || len(parts) < 2
			units = append(units, strings.Join(parts[:min(2, len(parts))], "/"))
		case keys.Uniters:
			// Longer keys belong to members of relations, which the status does not show.
			isRelationState := len(parts) == 4 && parts[2] == "relations"
			if len(parts) == 3 || isRelationState {
				units = append(units, parts[0]+"/"+parts[1])
			}
		case keys.Presences:
			// Any other agent is a machine's agent. Its unit is empty, which does not matter since all is true.
			unit, err := charm.ParseUnitTag(rest)
			all = all || err != nil
			units = append(units, unit)
		case keys.Services, keys.Machines, keys.Relations:
			isRecord := len(parts) == 1
			isStatus := len(parts) == 2 && parts[1] == "status"
			all = all || isRecord || isStatus
		case keys.Leaders, keys.Provisioner + "/", keys.Environment + "/":
			all = true
		}
	}

	slices.Sort(units)
	return slices.Compact(units), all
}
