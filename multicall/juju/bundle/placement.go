package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/state"
	"bijou/state/charm"
)

// placer resolves where the units of each application are to go, one place a unit: "" is
// wherever a unit goes, placeNew, a machine's number, or a unit ("mysql/0") that goes to
// one of the first two.
type placer struct {
	bundle *Bundle
	places map[string][]string
	busy   map[string]bool
}

// place follows applications to which others are put beside. The last place counts for
// units for which there is none.
func (p placer) place(name string) ([]string, error) {
	a := p.bundle.Applications[name]
	if places, done := p.places[name]; done {
		return places, nil
	}
	if p.busy[name] {
		return nil, fmt.Errorf("application %q is to be put beside itself (to)", name)
	}
	p.busy[name] = true
	next := map[string]int{}
	var places []string
	for i := range a.NumUnits {
		to := ""
		if len(a.To) > 0 {
			to = a.To[min(i, len(a.To)-1)]
		}
		if other, _, _ := strings.Cut(to, "/"); p.bundle.Applications[other] != nil {
			var err error
			if to, err = p.placeBeside(to, next[other]); err != nil {
				return nil, fmt.Errorf("application %q: %w", name, err)
			}
			next[other]++
		}
		places = append(places, to)
	}
	p.places[name] = places
	return places, nil
}

// placeBeside takes a unit, or an application of which it is the next one's turn.
func (p placer) placeBeside(to string, n int) (string, error) {
	other, digits, isUnit := strings.Cut(to, "/")
	places, err := p.place(other)
	if isUnit && err == nil {
		n, err = strconv.Atoi(digits)
	}
	if err != nil || n < 0 || n >= len(places) {
		return "", cmp.Or(err, fmt.Errorf("to %q: %q has %d units", to, other, len(places)))
	}
	if places[n] != "" && places[n] != placeNew {
		return places[n], nil
	}
	return charm.UnitName(other, n), nil
}

// matching is which places are taken: by machines, and by units.
type matching struct {
	places   map[string][]string
	machines map[string]string // by the bundle's number, or the unit that others are put beside
	taken    map[string][]bool // by application, for each of its places
}

// match finds the bundle's machines and units among those there are. A unit knows the
// machine's number in the bundle that added it; of one that an operator added, that is the
// machine's own. On "local" machine 0 is machine 0, which takes whatever asks for nothing.
func (e Environment) match(b *Bundle, places map[string][]string) matching {
	m, used := matching{places, map[string]string{}, map[string][]bool{}}, map[string]bool{}
	if zero, isThere := b.Machines["0"]; e.Provider == state.ProviderLocal && isThere && zero.Constraints == "" {
		m.machines["0"], used["0"] = "0", true
	}
	left := map[string][]state.Unit{}
	names := slices.Sorted(maps.Keys(places))
	for _, name := range names {
		left[name], m.taken[name] = slices.Clone(e.Services[name].Units), make([]bool, len(places[name]))
	}
	for _, name := range names {
		m.takeMachines(name, left[name], used, func(u state.Unit) string { return u.Place })
	}
	for _, name := range names {
		m.takeMachines(name, left[name], used, func(u state.Unit) string { return u.Machine })
	}
	for _, isTurn := range []func(place string) bool{
		func(place string) bool { return m.machines[place] != "" },
		func(place string) bool { return place == "" || place == placeNew },
		func(place string) bool { return m.machines[place] != "" }, // beside those of the turn before
		func(string) bool { return true },                          // units that are elsewhere are not moved
	} {
		for _, name := range names {
			left[name] = m.takePlaces(name, left[name], isTurn)
		}
	}
	return m
}

func (m matching) takeMachines(name string, units []state.Unit, used map[string]bool, numberOf func(u state.Unit) string) {
	for _, u := range units {
		if at := numberOf(u); at != "" && slices.Contains(m.places[name], at) && m.machines[at] == "" && !used[u.Machine] {
			m.machines[at], used[u.Machine] = u.Machine, true
		}
	}
}

// takePlaces returns the units that are left.
func (m matching) takePlaces(name string, units []state.Unit, isTurn func(place string) bool) []state.Unit {
	for i, place := range m.places[name] {
		if m.taken[name][i] || !isTurn(place) {
			continue
		}
		at := m.machines[place]
		n := slices.IndexFunc(units, func(u state.Unit) bool { return at == "" || u.Machine == at })
		if n < 0 {
			continue
		}
		m.taken[name][i] = true
		if place == "" || place == placeNew {
			m.machines[charm.UnitName(name, i)] = units[n].Machine
		}
		units = slices.Delete(units, n, n+1)
	}
	return units
}
