package bundle

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/state"
	"bijou/state/number"
	"bijou/state/resources"
	"bijou/state/text"
)

// Export returns a bundle that describes the environment. The bundle's charms and resources are the files, or
// the releases in the store, from which the environment's charms and resources came. The result omitted
// describes the facts that a bundle cannot express, one in each element. Export also leaves out machines
// without exported units, and relations that are being destroyed, which omitted does not describe.
func Export(e Environment) (b *Bundle, omitted []string) {
	b = &Bundle{Applications: map[string]*Application{}, Machines: map[string]Machine{}}
	numbers := e.numberMachines()

	for _, name := range slices.Sorted(maps.Keys(e.Services)) {
		s := e.Services[name]
		if s.Life != state.Alive {
			omitted = append(omitted, fmt.Sprintf("application %q, which is being destroyed", name))
			continue
		}

		b.Applications[name] = exportApplication(s, numbers)
		hasDeployOptions := s.HookDialect != "" || s.JujuVersion != "" || s.Force || s.ForceSeries
		if hasDeployOptions {
			omitted = append(omitted, fmt.Sprintf(
				"application %q was deployed with --hook-dialect, --juju-version, --force or --force-series", name))
		}
	}

	for _, m := range e.Machines {
		number, hasUnits := numbers[m.ID]
		if !hasUnits {
			continue
		}

		// Machine 0 of a local environment is this host. In a bundle, machine 0 stands for this host only if
		// it has no constraints.
		isThisHost := m.ID == "0" && e.Provider == state.ProviderLocal
		exported := Machine{}
		if !isThisHost {
			exported.Constraints = m.Constraints.String()
		}
		b.Machines[number] = exported
		if m.Placement != "" {
			omitted = append(omitted, fmt.Sprintf("machine %s is at %s:%s", number, e.Provider, m.Placement))
		}
	}

	for _, r := range e.Relations {
		// A new service gets its peer relations by itself.
		if r.Life == state.Alive && !r.IsPeer() {
			b.Relations = append(b.Relations, formatEnds(r.Endpoints))
		}
	}

	return b, omitted
}

// SecretOptions returns, as APPLICATION OPTION, the options in the bundle whose names or values look secret.
// It leaves out options that are empty, and options whose value is the ID of a secret, since an ID is not
// secret itself.
func (b *Bundle) SecretOptions() (found []string) {
	for _, name := range slices.Sorted(maps.Keys(b.Applications)) {
		options := b.Applications[name].Options
		for _, option := range slices.Sorted(maps.Keys(options)) {
			value := options[option].Value
			isSecretID := strings.HasPrefix(value, "secret:")
			if value == "" || isSecretID {
				continue
			}

			looksSecret := text.IsSecret(option) || text.HideSecrets(value) != value
			if looksSecret {
				found = append(found, name+" "+option)
			}
		}
	}

	return found
}

// exportApplication returns a service as an application of a bundle. The argument numbers maps the IDs of
// machines to their numbers in the bundle.
func exportApplication(s Service, numbers map[string]string) *Application {
	a := &Application{
		Charm:     s.Origin.Path,
		Series:    s.Series,
		NumUnits:  len(s.Units),
		Options:   exportOptions(s.Options),
		Resources: exportResources(s.Resources),
		Storage:   map[string]string{},
	}

	if s.Origin.Store != "" {
		a.Charm = s.Origin.Name
		a.Channel = s.Origin.Channel
		a.Revision = &s.Origin.Revision
		// The base also determines the series.
		if s.Origin.Base != "" {
			a.Series = ""
			a.Base = s.Origin.Base
		}
	}
	if constraints := s.Constraints.String(); constraints != "" {
		a.Constraints = &constraints
	}
	if s.Exposed {
		a.Expose = &s.Exposed
	}
	if s.Trusted {
		a.Trust = &s.Trusted
	}

	for name, directive := range s.Storage {
		a.Storage[name] = directive.String()
	}
	for _, u := range s.Units {
		a.To = append(a.To, numbers[u.Machine])
	}

	return a
}

// exportOptions returns the values of options as YAML.
func exportOptions(values map[string]any) map[string]yaml.Node {
	options := map[string]yaml.Node{}
	for option, value := range values {
		var n yaml.Node
		// Encode cannot fail for strings, numbers and booleans.
		_ = n.Encode(number.ForPrinting(value))
		options[option] = n
	}
	return options
}

// exportResources returns the revision in the store of each resource that comes from the store, and the path
// of the file of each other resource.
func exportResources(given map[string]resources.Resource) map[string]string {
	exported := map[string]string{}
	for name, r := range given {
		exported[name] = r.Origin // the file's path, unless the resource has a revision
		if r.Revision > 0 {
			exported[name] = strconv.Itoa(r.Revision)
		}
	}
	return exported
}

// numberMachines returns the numbers in the bundle of the machines that have units, by machine ID. A machine
// keeps the number from the bundle that added its units, and otherwise its own number. If two units on a
// machine have different numbers, or two machines have the same number, all machines keep their own numbers.
func (e Environment) numberMachines() map[string]string {
	numbers := map[string]string{}    // by machine
	ownNumbers := map[string]string{} // by machine
	machines := map[string]string{}   // by number
	hasConflict := false
	for _, s := range e.Services {
		if s.Life != state.Alive {
			continue
		}

		for _, u := range s.Units {
			// u.Place is empty if no bundle has added the unit.
			number := cmp.Or(u.Place, u.Machine)
			knownNumber := numbers[u.Machine]
			hasTwoNumbers := knownNumber != "" && knownNumber != number
			knownMachine := machines[number]
			isShared := knownMachine != "" && knownMachine != u.Machine
			if hasTwoNumbers || isShared {
				hasConflict = true
			}

			numbers[u.Machine] = number
			machines[number] = u.Machine
			ownNumbers[u.Machine] = u.Machine
		}
	}

	if hasConflict {
		return ownNumbers
	}
	return numbers
}

// Environment contains the parts of an environment that a bundle can describe.
type Environment struct {
	state.Environment
	Services  map[string]Service
	Machines  []state.Machine
	Relations []state.Relation // including peer relations
}

// Service is a service with the parts that a bundle can describe.
type Service struct {
	state.Service
	Charm     state.Charm
	Options   map[string]any // options that are set
	Units     []state.Unit   // units that are alive and not subordinates, by number
	Resources map[string]resources.Resource
}

// ReadEnvironment reads the environment from one view.
func ReadEnvironment(v *state.View) (Environment, error) {
	var e Environment
	env, err := v.Environment()
	if err != nil {
		return e, err
	}
	services, err := v.Services()
	if err != nil {
		return e, err
	}

	machines, err := v.Machines()
	if err != nil {
		return e, err
	}
	relations, err := v.Relations()
	if err != nil {
		return e, err
	}

	e = Environment{
		Environment: env,
		Services:    map[string]Service{},
		Machines:    machines,
		Relations:   relations,
	}
	for _, s := range services {
		service, err := readService(v, s)
		if err != nil {
			return e, err
		}
		e.Services[s.Name] = service
	}

	return e, nil
}

// readService reads a service with its charm, options and resources, and its living units except subordinates.
func readService(v *state.View, s state.Service) (Service, error) {
	c, err := v.Charm(s.Charm)
	if err != nil {
		return Service{}, err
	}
	config, err := v.Config(s.Name)
	if err != nil {
		return Service{}, err
	}

	given, err := resources.List(v, s.Name)
	if err != nil {
		return Service{}, err
	}
	units, err := v.Units(s.Name)
	if err != nil {
		return Service{}, err
	}

	service := Service{Service: s, Charm: c, Options: config.Values, Resources: map[string]resources.Resource{}}
	for _, r := range given {
		service.Resources[r.Name] = r
	}

	for _, u := range units {
		isSubordinate := u.Principal != ""
		if u.Life == state.Alive && !isSubordinate {
			service.Units = append(service.Units, u)
		}
	}

	return service, nil
}

// describe returns the facts about the service that Diff compares, by the keys that juju diff-bundle prints.
func (s Service) describe() map[string]any {
	sums := map[string]any{}
	for name, r := range s.Resources {
		sums[name] = r.SHA256
	}
	storage := map[string]any{}
	for name, d := range s.Storage {
		storage[name] = d.String()
	}

	return map[string]any{
		"charm":       s.Service.Charm,
		"num_units":   len(s.Units),
		"expose":      s.Exposed,
		"trust":       s.Trusted,
		"constraints": s.Constraints.String(),
		"options":     s.Options,
		"resources":   sums,
		"storage":     storage,
	}
}
