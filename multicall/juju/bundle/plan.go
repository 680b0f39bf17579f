package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
)

// Action is the kind of a step.
type Action string

// The actions.
const (
	Deploy      Action = "deploy"
	Upgrade     Action = "upgrade-charm"
	Change      Action = "change"
	AddRelation Action = "add-relation"
	AddUnit     Action = "add-unit"
)

// String returns the action for people. If juju has a new name for the command that performs the action, it
// returns that name. JSON and YAML use the constants' values instead, since programs read them.
func (a Action) String() string {
	switch a {
	case Upgrade:
		return "refresh"
	case AddRelation:
		return "integrate"
	}

	return string(a)
}

// Step is one of the steps that make an environment match a bundle.
type Step struct {
	Action Action `json:"action" yaml:"action"`
	What   string `json:"what" yaml:"what"` // an application, or a relation's endpoints
	How    string `json:"how,omitempty" yaml:"how,omitempty"`

	Series      string                     `json:"-" yaml:"-"` // for Deploy
	Options     map[string]any             `json:"-" yaml:"-"` // for Deploy and Change, like the next three fields
	Resources   []string                   `json:"-" yaml:"-"`
	Constraints *constraints.Value         `json:"-" yaml:"-"`
	Storage     map[string]charm.Directive `json:"-" yaml:"-"`
	Exposed     *bool                      `json:"-" yaml:"-"` // for Change, like Trusted
	Trusted     *bool                      `json:"-" yaml:"-"`
	Relation    []state.Endpoint           `json:"-" yaml:"-"`
	Place       string                     `json:"-" yaml:"-"` // for AddUnit: "", state.PlaceNew, or a key of MachinesThere
	Machine     *state.Machine             `json:"-" yaml:"-"` // for AddUnit, if Place is a machine in the bundle
	Units       []int                      `json:"-" yaml:"-"` // for AddUnit: the numbers of the application's units in the bundle, from 0
}

// MachinesThere returns the IDs of existing machines by their numbers in the bundle. It also contains the
// machines of existing units beside which other units can be placed, by the units' names in the bundle, such
// as mysql/0.
func (c *Comparison) MachinesThere() map[string]string { return c.matched.machines }

// Plan returns the steps that make the environment match the bundle, in order. It returns none if the
// environment matches. The steps remove no application, unit, machine or relation.
func (c *Comparison) Plan() []Step {
	steps := []Step{}
	for _, name := range c.names {
		steps = append(steps, c.wanted[name].plan(name)...)
	}

	for _, ends := range c.relations {
		if _, exists := c.findRelation(ends); exists {
			continue
		}
		steps = append(steps, Step{
			Action:   AddRelation,
			What:     ends[0].String() + " " + ends[1].String(),
			Relation: ends,
		})
	}

	// A unit beside a different unit must be added after that unit.
	for _, isBeside := range []bool{false, true} {
		for _, name := range c.names {
			steps = append(steps, c.planUnits(name, isBeside)...)
		}
	}

	return steps
}

// plan returns the steps for one application. A new service is deployed with all settings, and exposed and
// trusted in a second step. For an existing service, an upgrade comes first if the charm differs, and then
// one step changes all settings that differ.
func (w *wanted) plan(name string) (steps []Step) {
	change := Step{Action: Change, What: name}
	var changes []string
	if w.exists {
		if !w.IsSame {
			steps = append(steps, Step{Action: Upgrade, What: name, How: w.have.Service.Charm + " to " + w.Charm})
		}
		changes = w.addSettings(&change)
	} else {
		deploy := Step{Action: Deploy, What: name, Series: w.series}
		settings := w.addSettings(&deploy)
		deploy.How = strings.Join(append([]string{w.Charm + " on " + w.series}, settings...), ", ")
		steps = append(steps, deploy)
	}

	changes = append(changes, w.addAccess(&change)...)
	if len(changes) > 0 {
		change.How = strings.Join(changes, ", ")
		steps = append(steps, change)
	}

	return steps
}

// addSettings adds to a step the settings that differ from those of the existing service: options, resources
// and constraints. If any storage differs, it adds all of w.storage, which replaces the service's storage. It
// returns descriptions of the added settings, which leave out storage that the bundle does not name. Options
// that the bundle does not name keep their values.
func (w *wanted) addSettings(step *Step) (changes []string) {
	step.Options = map[string]any{}
	for _, option := range slices.Sorted(maps.Keys(w.options)) {
		value := w.options[option]
		if w.have.Options[option] != value {
			step.Options[option] = value
			changes = append(changes, "option "+option)
		}
	}

	for _, resource := range slices.Sorted(maps.Keys(w.Found.Resources)) {
		if w.have.Resources[resource].SHA256 != w.Found.Resources[resource].SHA256 {
			step.Resources = append(step.Resources, resource)
			changes = append(changes, "resource "+resource)
		}
	}

	if w.constraints != nil && w.constraints.String() != w.have.Constraints.String() {
		step.Constraints = w.constraints
		changes = append(changes, "constraints "+w.constraints.String())
	}
	if !maps.Equal(w.storage, w.have.Storage) {
		step.Storage = w.storage
		for _, name := range slices.Sorted(maps.Keys(w.Application.Storage)) {
			changes = append(changes, "storage "+name+"="+w.storage[name].String())
		}
	}

	return changes
}

// addAccess adds to a step whether the service must be exposed and trusted, where this differs from the
// existing service. It returns a description of each change.
func (w *wanted) addAccess(step *Step) (changes []string) {
	if w.Expose != nil && *w.Expose != w.have.Exposed {
		step.Exposed = w.Expose
		changes = append(changes, "exposed: "+strconv.FormatBool(*w.Expose))
	}
	if w.Trust != nil && *w.Trust != w.have.Trusted {
		step.Trusted = w.Trust
		changes = append(changes, "trusted: "+strconv.FormatBool(*w.Trust))
	}

	return changes
}

// planUnits returns the steps that add the application's missing units. If isBeside is true, it plans only
// the units that are placed beside a unit. Otherwise it plans only the other units. One step adds consecutive
// units that have the same place, if that place names neither a machine nor a unit.
func (c *Comparison) planUnits(name string, isBeside bool) (steps []Step) {
	for i, place := range c.matched.places[name] {
		exists := c.matched.taken[name][i]
		if exists || isUnitPlace(place) != isBeside {
			continue
		}

		last := len(steps) - 1
		if last >= 0 && steps[last].Place == place && isOpenPlace(place) {
			step := &steps[last]
			step.Units = append(step.Units, i)
			step.How = fmt.Sprintf("%d units, %s", len(step.Units), c.describePlace(place))
			continue
		}

		step := Step{Action: AddUnit, What: name, How: c.describePlace(place), Place: place, Units: []int{i}}
		isMachine := !isOpenPlace(place) && !isBeside
		if isMachine {
			// Compare has checked the machine.
			spec, _ := c.machineSpec(place)
			step.Machine = &spec
		}
		steps = append(steps, step)
	}

	return steps
}

// isOpenPlace reports whether the place names neither a machine nor a unit of the bundle.
func isOpenPlace(place string) bool { return place == "" || place == placeNew }

// isUnitPlace reports whether the place is beside a unit of the bundle, such as mysql/0.
func isUnitPlace(place string) bool { return strings.Contains(place, "/") }

// describePlace returns in words where the bundle places a unit, for the step that adds the unit.
func (c *Comparison) describePlace(place string) string {
	switch {
	case place == "":
		return "where units go"
	case place == placeNew:
		return "on a machine of its own"
	case isUnitPlace(place):
		return "beside unit " + place + " of the bundle"
	}

	// The place is a machine of the bundle.
	if existing := c.matched.machines[place]; existing != "" {
		return fmt.Sprintf("on machine %s, %s of the bundle", existing, place)
	}
	return "on a new machine, " + place + " of the bundle"
}

// placer resolves the places of the units of each application. A resolved place has one of four forms. It is
// "" for a unit that is placed as by juju deploy, and placeNew for a unit on a new machine. It can also be a
// machine's number, or a unit such as mysql/0 whose own place is "" or placeNew.
type placer struct {
	bundle *Bundle
	done   map[string][]string // the units' places, by application
	busy   map[string]bool     // the applications that are being placed
}

// place returns the resolved place of each unit of an application. If a unit is placed beside a unit of a
// different application, it resolves that application first. The last entry of the application's "to" also
// applies to further units. It returns an error if applications are placed beside each other in a circle, or
// beside a unit that the bundle does not have.
func (p placer) place(name string) ([]string, error) {
	if places, done := p.done[name]; done {
		return places, nil
	}
	if p.busy[name] {
		return nil, fmt.Errorf("application %q cannot be placed beside itself: see its \"to\"", name)
	}
	p.busy[name] = true
	defer delete(p.busy, name) // also after a failure, so that a later call returns the same error

	a := p.bundle.Applications[name]
	nextUnit := map[string]int{} // the unit of each other application beside which the next unit is placed
	var places []string
	for i := range a.NumUnits {
		to := ""
		if len(a.To) > 0 {
			to = a.To[min(i, len(a.To)-1)]
		}

		other, _, _ := strings.Cut(to, "/")
		isBeside := p.bundle.Applications[other] != nil
		if !isBeside {
			places = append(places, to)
			continue
		}

		place, err := p.placeBeside(to, nextUnit[other])
		if err != nil {
			return nil, fmt.Errorf("application %q: %w", name, err)
		}
		nextUnit[other]++
		places = append(places, place)
	}

	p.done[name] = places
	return places, nil
}

// placeBeside returns the resolved place for a unit that is placed beside the unit to, such as mysql/0. If to
// is only an application, it uses unit n of that application. If that unit is on a machine of the bundle, or
// beside another unit, the result is the same place. Otherwise it is the name of that unit.
func (p placer) placeBeside(to string, n int) (string, error) {
	other, digits, isUnit := strings.Cut(to, "/")
	places, err := p.place(other)
	if err != nil {
		return "", err
	}
	if isUnit {
		n, err = strconv.Atoi(digits)
		if err != nil {
			return "", err
		}
	}

	if n < 0 || n >= len(places) {
		return "", fmt.Errorf("cannot place a unit beside %q: application %q has %d units", to, other, len(places))
	}
	if !isOpenPlace(places[n]) {
		return places[n], nil
	}

	return charm.UnitName(other, n), nil
}

// matching assigns existing machines and units to places in the bundle.
type matching struct {
	places   map[string][]string // the resolved place of each unit, by application
	machines map[string]string   // existing machines, by their number or by the name of a unit in the bundle
	taken    map[string][]bool   // whether an existing unit has the place, for each place of each application
}

// match finds the bundle's machines and units among the existing ones. The argument places contains the
// resolved places of each application. A unit's record contains the number of its machine in the bundle that
// added the unit. match first finds machines by these numbers, and then by the machines' own numbers. In a local
// environment, the bundle's machine 0 is the existing machine 0, unless the bundle gives it constraints.
func (e Environment) match(b *Bundle, places map[string][]string) matching {
	m := matching{
		places:   places,
		machines: map[string]string{},
		taken:    map[string][]bool{},
	}
	usedMachines := map[string]bool{}
	zero, hasZero := b.Machines["0"]
	if e.Provider == state.ProviderLocal && hasZero && zero.Constraints == "" {
		m.machines["0"] = "0"
		usedMachines["0"] = true
	}

	unmatched := map[string][]state.Unit{} // by application
	names := slices.Sorted(maps.Keys(places))
	for _, name := range names {
		unmatched[name] = slices.Clone(e.Services[name].Units)
		m.taken[name] = make([]bool, len(places[name]))
	}

	// The numbers from a bundle take precedence over the machines' own numbers.
	for _, name := range names {
		m.takeMachines(name, unmatched[name], usedMachines, func(u state.Unit) string { return u.Place })
	}
	for _, name := range names {
		m.takeMachines(name, unmatched[name], usedMachines, func(u state.Unit) string { return u.Machine })
	}

	hasMachine := func(place string) bool { return m.machines[place] != "" }
	for _, accepts := range []func(place string) bool{
		// First the units on the right machines, and then those that can be on any machine.
		hasMachine,
		isOpenPlace,
		// The previous turn may have found the machines of units beside which other units are placed.
		hasMachine,
		// A unit on a wrong machine also counts as existing, since units are not moved.
		func(string) bool { return true },
	} {
		for _, name := range names {
			unmatched[name] = m.takePlaces(name, unmatched[name], accepts)
		}
	}

	return m
}

// takeMachines assigns the machines of an application's units to machines of the bundle, by the number that
// numberOf returns. It skips a number that is not one of the application's places. It also skips numbers and
// machines that are already assigned. The argument usedMachines contains the assigned machines, to which
// takeMachines adds its own.
func (m matching) takeMachines(
	name string,
	units []state.Unit,
	usedMachines map[string]bool,
	numberOf func(u state.Unit) string,
) {
	for _, u := range units {
		number := numberOf(u)
		isPlace := number != "" && slices.Contains(m.places[name], number)
		isAssigned := m.machines[number] != "" || usedMachines[u.Machine]
		if isPlace && !isAssigned {
			m.machines[number] = u.Machine
			usedMachines[u.Machine] = true
		}
	}
}

// takePlaces assigns units to those free places of an application for which accepts returns true. A place with
// an existing machine gets only a unit on that machine. takePlaces removes the assigned units from the slice
// units, and returns the rest.
func (m matching) takePlaces(name string, units []state.Unit, accepts func(place string) bool) []state.Unit {
	for i, place := range m.places[name] {
		if m.taken[name][i] || !accepts(place) {
			continue
		}

		machine := m.machines[place]
		found := slices.IndexFunc(units, func(u state.Unit) bool { return machine == "" || u.Machine == machine })
		if found < 0 {
			continue
		}

		m.taken[name][i] = true
		if isOpenPlace(place) {
			// Other units can be placed beside this unit.
			m.machines[charm.UnitName(name, i)] = units[found].Machine
		}
		units = slices.Delete(units, found, found+1)
	}

	return units
}

// chooseStorage sets w.storage, the directives for the application's new units. If the bundle has no directives,
// an existing service keeps all of its own. Otherwise the bundle's directives override the service's. chooseStorage
// then also drops directives of the service for storage that the new charm does not have.
func (w *wanted) chooseStorage() error {
	if w.exists && len(w.Application.Storage) == 0 {
		w.storage = w.have.Storage
		return nil
	}

	directives := map[string]charm.Directive{}
	for name, directive := range w.have.Storage {
		if _, isInCharm := w.Meta.Storage[name]; isInCharm {
			directives[name] = directive
		}
	}

	for _, name := range slices.Sorted(maps.Keys(w.Application.Storage)) {
		_, directive, err := charm.ParseDirective(name + "=" + w.Application.Storage[name])
		if err != nil {
			return err
		}
		directives[name] = directive
	}

	chosen, err := state.ChooseStorage(*w.Meta, directives)
	w.storage = chosen
	if err != nil {
		return fmt.Errorf("storage: %w", err)
	}

	return nil
}
