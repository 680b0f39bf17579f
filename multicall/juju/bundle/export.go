package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"bijou/state"

	"gopkg.in/yaml.v3"
)

// Export returns the bundle that says what there is, and what it cannot say. Charms and
// resources are the files that they were taken from.
func Export(e Environment) (b *Bundle, unsaid []string) {
	b = &Bundle{Applications: map[string]*Application{}, Machines: map[string]Machine{}}
	numbers := e.numberMachines()
	for _, name := range slices.Sorted(maps.Keys(e.Services)) {
		s := e.Services[name]
		if s.Life != state.Alive {
			unsaid = append(unsaid, fmt.Sprintf("application %q, which is being destroyed", name))
			continue
		}
		b.Applications[name] = exportApplication(s, numbers)
		if s.HookDialect != "" || s.JujuVersion != "" || s.Force || s.ForceSeries {
			unsaid = append(unsaid, fmt.Sprintf("application %q was deployed with --hook-dialect, --juju-version, --force or --force-series", name))
		}
	}
	for _, m := range e.Machines {
		number, hasUnits := numbers[m.ID]
		if !hasUnits {
			continue
		}
		b.Machines[number] = Machine{}
		if m.ID != "0" || e.Provider != state.ProviderLocal {
			b.Machines[number] = Machine{Constraints: m.Constraints.String()}
		}
		if m.Placement != "" {
			unsaid = append(unsaid, fmt.Sprintf("machine %s is at %s:%s", number, e.Provider, m.Placement))
		}
	}
	for _, r := range e.Relations {
		if r.Life == state.Alive && !r.IsPeer() {
			b.Relations = append(b.Relations, formatEnds(r.Endpoints))
		}
	}
	return b, unsaid
}

func exportApplication(s Service, numbers map[string]string) *Application {
	a := &Application{Charm: s.Origin.Path, Series: s.Series, NumUnits: len(s.Units), Options: map[string]yaml.Node{}, Resources: map[string]string{}}
	if text := s.Constraints.String(); text != "" {
		a.Constraints = &text
	}
	if s.Exposed {
		a.Expose = &s.Exposed
	}
	if s.Trusted {
		a.Trust = &s.Trusted
	}
	for option, value := range s.Options {
		var n yaml.Node
		_ = n.Encode(value) // texts, numbers and booleans always encode
		a.Options[option] = n
	}
	for resource, r := range s.Resources {
		a.Resources[resource] = r.Origin
	}
	for _, u := range s.Units {
		a.To = append(a.To, numbers[u.Machine])
	}
	return a
}

// numberMachines numbers the machines that have units as the bundle did that put those there,
// if all units agree and no two machines have one number; else they keep their own.
func (e Environment) numberMachines() map[string]string {
	numbers, own, taken := map[string]string{}, map[string]string{}, map[string]string{}
	agree := true
	for _, s := range e.Services {
		for _, u := range s.Units {
			if s.Life != state.Alive {
				continue
			}
			number := cmp.Or(u.Place, u.Machine)
			agree = agree && cmp.Or(numbers[u.Machine], number) == number && cmp.Or(taken[number], u.Machine) == u.Machine
			numbers[u.Machine], taken[number], own[u.Machine] = number, u.Machine, u.Machine
		}
	}
	if agree {
		return numbers
	}
	return own
}
