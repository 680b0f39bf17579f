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

// Refresh updates a status of the whole environment after changes in the scope [state.WatchAll]. It returns
// the units that it has read again; all is true if it has read everything. After a change of a unit it reads
// only that unit. It does not update a service's workload version, which units set, unless all is true.
func (s *Status) Refresh(v *state.View, o Options, changes []state.KeyChange) (units []string, all bool, err error) {
	units, all = concernedBy(changes)
	if all {
		*s, err = Read(v, o)
		return nil, true, err
	}
	if len(units) == 0 {
		return nil, false, nil
	}

	o.Globs = units
	o.alone = true
	read, err := Read(v, o)
	if err != nil {
		return units, false, err
	}

	s.merge(read, units)
	return units, false, nil
}

// merge replaces the named units with those in the newly read status. It removes named units that are not in
// that status.
func (s *Status) merge(read Status, units []string) {
	maps.Copy(s.Machines, read.Machines)

	for _, name := range units {
		service := path.Dir(name)
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
// it deletes the entry in the first.
func replaceEntry[T any](to, from map[string]T, name string) {
	if entry, ok := from[name]; ok && to != nil {
		to[name] = entry
		return
	}
	delete(to, name)
}

// concernedBy returns the units that must be read again after the changes, sorted. all is true if it must
// read everything.
func concernedBy(changes []state.KeyChange) (units []string, all bool) {
	for _, c := range changes {
		word, rest, _ := strings.Cut(c.Key, "/")
		parts := strings.Split(rest, "/")

		switch word + "/" {
		case keys.Units:
			all = all || len(parts) < 2
			units = append(units, strings.Join(parts[:min(2, len(parts))], "/"))
		case keys.Uniters: // the status does not show members of relations
			if len(parts) == 3 || len(parts) == 4 && parts[2] == "relations" {
				units = append(units, parts[0]+"/"+parts[1])
			}
		case keys.Presences:
			unit, err := charm.ParseUnitTag(rest)
			all = all || err != nil
			units = append(units, unit)
		case keys.Services, keys.Machines, keys.Relations:
			all = all || len(parts) == 1 || len(parts) == 2 && parts[1] == "status"
		case keys.Leaders, keys.Provisioner + "/", keys.Environment + "/":
			all = true
		}
	}

	slices.Sort(units)
	return slices.Compact(units), all
}
