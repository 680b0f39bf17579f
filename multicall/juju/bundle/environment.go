package bundle

import (
	"errors"

	"bijou/state"
)

// Environment has all that there is of what bundles speak of.
type Environment struct {
	state.Environment
	Services  map[string]Service
	Machines  []state.Machine
	Relations []state.Relation // also those of one service's units
}

// Service is a service with all that bundles say of one.
type Service struct {
	state.Service
	Charm     state.Charm
	Options   map[string]any // that are set
	Units     []state.Unit   // that are alive and no subordinates, by number
	Resources map[string]state.Resource
}

// ReadEnvironment reads all at one revision.
func ReadEnvironment(v *state.View) (Environment, error) {
	env, err := v.Environment()
	services, serviceErr := v.Services()
	machines, machineErr := v.Machines()
	relations, relationErr := v.Relations()
	e := Environment{env, map[string]Service{}, machines, relations}
	err = errors.Join(err, serviceErr, machineErr, relationErr)
	for i := 0; i < len(services) && err == nil; i++ {
		e.Services[services[i].Name], err = readService(v, services[i])
	}
	return e, err
}

func readService(v *state.View, s state.Service) (Service, error) {
	c, err := v.Charm(s.Charm)
	config, configErr := v.Config(s.Name)
	resources, resourceErr := v.Resources(s.Name)
	units, unitErr := v.Units(s.Name)
	all := Service{Service: s, Charm: c, Options: config.Values, Resources: map[string]state.Resource{}}
	for _, r := range resources {
		all.Resources[r.Name] = r
	}
	for _, u := range units {
		if u.Life == state.Alive && u.Principal == "" {
			all.Units = append(all.Units, u)
		}
	}
	return all, errors.Join(err, configErr, resourceErr, unitErr)
}
