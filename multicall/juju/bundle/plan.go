package bundle

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/state"
	"bijou/state/constraints"
)

// Action names what a step does.
type Action string

// The actions.
const (
	Deploy      Action = "deploy"
	Upgrade     Action = "upgrade-charm"
	Change      Action = "change"
	AddRelation Action = "add-relation"
	AddUnit     Action = "add-unit"
)

// Step is one of the steps from an environment to what a bundle says.
type Step struct {
	Action Action `json:"action" yaml:"action"`
	What   string `json:"what" yaml:"what"` // an application, a relation's endpoints
	How    string `json:"how,omitempty" yaml:"how,omitempty"`

	Series      string             `json:"-" yaml:"-"` // of Deploy
	Options     map[string]any     `json:"-" yaml:"-"` // of Deploy and Change; as the next two
	Resources   []string           `json:"-" yaml:"-"`
	Constraints *constraints.Value `json:"-" yaml:"-"`
	Exposed     *bool              `json:"-" yaml:"-"` // of Change; as the next one
	Trusted     *bool              `json:"-" yaml:"-"`
	Relation    []state.Endpoint   `json:"-" yaml:"-"`
	Place       string             `json:"-" yaml:"-"` // of AddUnit: "", state.PlaceNew, or a key of MachinesThere
	Machine     *state.MachineSpec `json:"-" yaml:"-"` // of AddUnit, if Place is a machine of the bundle
	Units       []int              `json:"-" yaml:"-"` // of AddUnit: which of the application's, from 0
}

// MachinesThere returns the machines that are there, by their numbers in the bundle; and
// those of units ("mysql/0", of the application's in the bundle) that others are put beside.
func (c *Comparison) MachinesThere() map[string]string { return c.machines }

// Plan returns what is to be done, in order. Nothing is taken away but a mark of exposure.
func (c *Comparison) Plan() []Step {
	steps := []Step{}
	for _, name := range c.names {
		steps = append(steps, c.wanted[name].plan(name)...)
	}
	for _, ends := range c.relations {
		if _, isThere := c.findRelation(ends); !isThere {
			steps = append(steps, Step{Action: AddRelation, What: ends[0].String() + " " + ends[1].String(), Relation: ends})
		}
	}
	for _, isBeside := range []bool{false, true} {
		for _, name := range c.names {
			steps = append(steps, c.planUnits(name, isBeside)...)
		}
	}
	return steps
}

// plan deploys a service with all that is asked of it, but for the mark of exposure; of one
// that there is it changes what differs, at once.
func (w *wanted) plan(name string) (steps []Step) {
	change, how := Step{Action: Change, What: name, Options: map[string]any{}}, []string{}
	for _, option := range slices.Sorted(maps.Keys(w.options)) {
		if value := w.options[option]; w.have.Options[option] != value {
			change.Options[option], how = value, append(how, "option "+option)
		}
	}
	for _, resource := range slices.Sorted(maps.Keys(w.Found.Resources)) {
		if w.have.Resources[resource].SHA256 != w.Found.Resources[resource].SHA256 {
			change.Resources, how = append(change.Resources, resource), append(how, "resource "+resource)
		}
	}
	if w.constraints != nil && w.constraints.String() != w.have.Constraints.String() {
		change.Constraints, how = w.constraints, append(how, "constraints "+w.constraints.String())
	}
	if !w.isThere {
		change.Action, change.Series, change.How = Deploy, w.series, strings.Join(append([]string{w.Charm + " on " + w.series}, how...), ", ")
		steps, how = append(steps, change), nil
		change = Step{Action: Change, What: name}
	} else if !w.IsSame {
		steps = append(steps, Step{Action: Upgrade, What: name, How: w.have.Service.Charm + " to " + w.Charm})
	}
	if w.Expose != nil && *w.Expose != w.have.Exposed {
		change.Exposed, how = w.Expose, append(how, "exposed: "+strconv.FormatBool(*w.Expose))
	}
	if w.Trust != nil && *w.Trust != w.have.Trusted {
		change.Trusted, how = w.Trust, append(how, "trusted: "+strconv.FormatBool(*w.Trust))
	}
	if change.How = strings.Join(how, ", "); len(how) > 0 {
		steps = append(steps, change)
	}
	return steps
}

// planUnits adds the units whose place is beside another unit, or those whose is not: the
// former come after all of the latter.
func (c *Comparison) planUnits(name string, isBeside bool) (steps []Step) {
	for i, place := range c.places[name] {
		if c.taken[name][i] || strings.Contains(place, "/") != isBeside {
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
			spec, _ := c.machineSpec(place) // Compare has checked it
			s.Machine = &spec
		}
		steps = append(steps, s)
	}
	return steps
}

func (c *Comparison) describePlace(place string) string {
	switch at := c.machines[place]; {
	case place == "":
		return "where units go"
	case place == placeNew:
		return "on a machine of its own"
	case strings.Contains(place, "/"):
		return "beside unit " + place + " of the bundle"
	case at == "":
		return "on a new machine, " + place + " of the bundle"
	default:
		return fmt.Sprintf("on machine %s, %s of the bundle", at, place)
	}
}
