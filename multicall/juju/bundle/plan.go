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

// String returns the name of the command that does the same. JSON and YAML keep the words above, which programs
// read.
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

// MachinesThere returns the existing machines by their numbers in the bundle. If new units are placed beside
// existing units, it also has the machines of these units, by the units' names in the bundle, such as
// mysql/0.
func (c *Comparison) MachinesThere() map[string]string { return c.matched.machines }

// Plan returns the steps in order. They remove nothing. At most they unexpose an application.
func (c *Comparison) Plan() []Step {
	steps := []Step{}
	for _, name := range c.names {
		steps = append(steps, c.wanted[name].plan(name)...)
	}

	for _, ends := range c.relations {
		if _, isThere := c.findRelation(ends); !isThere {
			steps = append(steps, Step{
				Action:   AddRelation,
				What:     ends[0].String() + " " + ends[1].String(),
				Relation: ends,
			})
		}
	}

	for _, isBeside := range []bool{false, true} {
		for _, name := range c.names {
			steps = append(steps, c.planUnits(name, isBeside)...)
		}
	}

	return steps
}

// plan returns the steps for one application. A new service is deployed with all settings, and exposed
// after that. For an existing service, one step changes all settings that differ.
func (w *wanted) plan(name string) (steps []Step) {
	change := Step{Action: Change, What: name}
	var how []string
	if !w.isThere {
		deploy := Step{Action: Deploy, What: name, Series: w.series}
		settings := w.addSettings(&deploy)
		deploy.How = strings.Join(append([]string{w.Charm + " on " + w.series}, settings...), ", ")
		steps = append(steps, deploy)
	} else {
		if !w.IsSame {
			steps = append(steps, Step{Action: Upgrade, What: name, How: w.have.Service.Charm + " to " + w.Charm})
		}
		how = w.addSettings(&change)
	}

	how = append(how, w.addAccess(&change)...)
	change.How = strings.Join(how, ", ")
	if len(how) > 0 {
		steps = append(steps, change)
	}

	return steps
}

// addSettings adds the settings that differ from the service's to a step: options, resources, constraints
// and storage. It returns a text for each change.
func (w *wanted) addSettings(step *Step) (how []string) {
	step.Options = map[string]any{}
	for _, option := range slices.Sorted(maps.Keys(w.options)) {
		if value := w.options[option]; w.have.Options[option] != value {
			step.Options[option] = value
			how = append(how, "option "+option)
		}
	}

	for _, resource := range slices.Sorted(maps.Keys(w.Found.Resources)) {
		if w.have.Resources[resource].SHA256 != w.Found.Resources[resource].SHA256 {
			step.Resources = append(step.Resources, resource)
			how = append(how, "resource "+resource)
		}
	}

	if w.constraints != nil && w.constraints.String() != w.have.Constraints.String() {
		step.Constraints = w.constraints
		how = append(how, "constraints "+w.constraints.String())
	}
	if !maps.Equal(w.storage, w.have.Storage) {
		step.Storage = w.storage
		for _, name := range slices.Sorted(maps.Keys(w.Application.Storage)) {
			how = append(how, "storage "+name+"="+w.storage[name].String())
		}
	}

	return how
}

// addAccess adds to a step whether the service is exposed and trusted, if this differs from the service. It
// returns a text for each change.
func (w *wanted) addAccess(step *Step) (how []string) {
	if w.Expose != nil && *w.Expose != w.have.Exposed {
		step.Exposed = w.Expose
		how = append(how, "exposed: "+strconv.FormatBool(*w.Expose))
	}
	if w.Trust != nil && *w.Trust != w.have.Trusted {
		step.Trusted = w.Trust
		how = append(how, "trusted: "+strconv.FormatBool(*w.Trust))
	}

	return how
}

// planUnits returns the steps that add units. If isBeside is true, it plans the units that are placed beside
// a different unit. Otherwise it plans all other units, which must come first.
func (c *Comparison) planUnits(name string, isBeside bool) (steps []Step) {
	for i, place := range c.matched.places[name] {
		if c.matched.taken[name][i] || strings.Contains(place, "/") != isBeside {
			continue
		}

		isAnywhere := place == "" || place == placeNew
		if n := len(steps) - 1; n >= 0 && steps[n].Place == place && isAnywhere {
			steps[n].Units = append(steps[n].Units, i)
			steps[n].How = fmt.Sprintf("%d units, %s", len(steps[n].Units), c.describePlace(place))
			continue
		}

		s := Step{Action: AddUnit, What: name, How: c.describePlace(place), Place: place, Units: []int{i}}
		if !isAnywhere && !isBeside {
			// Compare has checked the machine.
			spec, _ := c.machineSpec(place)
			s.Machine = &spec
		}
		steps = append(steps, s)
	}

	return steps
}

// describePlace returns in words where the bundle places a unit.
func (c *Comparison) describePlace(place string) string {
	switch {
	case place == "":
		return "where units go"
	case place == placeNew:
		return "on a machine of its own"
	case strings.Contains(place, "/"):
		return "beside unit " + place + " of the bundle"
	}

	// The place is a machine of the bundle.
	if at := c.matched.machines[place]; at != "" {
		return fmt.Sprintf("on machine %s, %s of the bundle", at, place)
	}
	return "on a new machine, " + place + " of the bundle"
}

// placer resolves the places of the units of each application. A place is "" for any machine, placeNew, a
// machine's number, or a unit such as mysql/0 whose own place is "" or placeNew.
type placer struct {
	bundle *Bundle
	done   map[string][]string // the units' places, by application
	busy   map[string]bool     // the applications that are being placed, or cannot be placed
}

// place returns the place of each unit of an application. If a unit is placed beside a unit of a different
// application, that application is placed first. The last place also applies to units without a place.
func (p placer) place(name string) ([]string, error) {
	a := p.bundle.Applications[name]
	if places, done := p.done[name]; done {
		return places, nil
	}
	if p.busy[name] {
		return nil, fmt.Errorf("application %q cannot be placed beside itself: see its \"to\"", name)
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

	p.done[name] = places
	return places, nil
}

// placeBeside returns the place beside a unit, or beside unit n if the argument to names an application.
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
	if places[n] != "" && places[n] != placeNew {
		return places[n], nil
	}

	return charm.UnitName(other, n), nil
}

// matching assigns existing machines and units to places in the bundle.
type matching struct {
	places   map[string][]string
	machines map[string]string // existing machines, by their number or by the name of a unit in the bundle
	taken    map[string][]bool // whether an existing unit has the place, for each place of each application
}

// match finds the bundle's machines and units among the existing ones. A unit's record has the number of its
// machine in the bundle that added the unit. For a unit that an operator added, the machine's own number
// counts. On "local" the bundle's machine 0 is machine 0, unless it has constraints.
func (e Environment) match(b *Bundle, places map[string][]string) matching {
	m := matching{
		places:   places,
		machines: map[string]string{},
		taken:    map[string][]bool{},
	}
	used := map[string]bool{}
	zero, isThere := b.Machines["0"]
	if e.Provider == state.ProviderLocal && isThere && zero.Constraints == "" {
		m.machines["0"] = "0"
		used["0"] = true
	}

	left := map[string][]state.Unit{}
	names := slices.Sorted(maps.Keys(places))
	for _, name := range names {
		left[name] = slices.Clone(e.Services[name].Units)
		m.taken[name] = make([]bool, len(places[name]))
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
		// The previous turn may have assigned machines of units beside which other units are placed.
		func(place string) bool { return m.machines[place] != "" },
		// Units on any other machine are not moved.
		func(string) bool { return true },
	} {
		for _, name := range names {
			left[name] = m.takePlaces(name, left[name], isTurn)
		}
	}

	return m
}

// takeMachines assigns the units' machines to places of the bundle, by the number that numberOf returns. It
// skips machines and places that are already assigned.
func (m matching) takeMachines(
	name string,
	units []state.Unit,
	used map[string]bool,
	numberOf func(u state.Unit) string,
) {
	for _, u := range units {
		if at := numberOf(u); at != "" && slices.Contains(m.places[name], at) && m.machines[at] == "" &&
			!used[u.Machine] {
			m.machines[at] = u.Machine
			used[u.Machine] = true
		}
	}
}

// takePlaces assigns units to the places of an application for which isTurn returns true. It returns the
// remaining units.
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

// chooseStorage sets the application's storage. The bundle's directives override those of the existing service.
func (w *wanted) chooseStorage() (err error) {
	if w.isThere && len(w.Application.Storage) == 0 {
		w.storage = w.have.Storage
		return nil
	}

	asked := map[string]charm.Directive{}
	for name, d := range w.have.Storage {
		if _, kept := w.Meta.Storage[name]; kept {
			asked[name] = d
		}
	}

	for _, name := range slices.Sorted(maps.Keys(w.Application.Storage)) {
		if _, asked[name], err = charm.ParseDirective(name + "=" + w.Application.Storage[name]); err != nil {
			return err
		}
	}

	if w.storage, err = state.ChooseStorage(*w.Meta, asked); err != nil {
		return fmt.Errorf("storage: %w", err)
	}

	return nil
}
