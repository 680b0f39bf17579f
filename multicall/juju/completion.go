package juju

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// completionTimeout is shorter than the patience of who has pressed a key.
const completionTimeout = time.Second

// completeNames returns the names that a value may be, of environments or of what an
// environment has; none if they cannot be read.
func completeNames(w console.Wanted) (names []string) {
	h, err := home.Find()
	kinds := cmp.Or(nameKinds[w.Command+" "+w.Value], nameKinds[w.Value])
	if err != nil || kinds == "" {
		return nil
	}
	if kinds == "environments" {
		names, _ = h.Names() // without them nothing is completed
		return names
	}
	e, err := h.Choose(cmp.Or(w.Flags["environment"], w.Flags["model"]))
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
	defer cancel()
	s, err := state.Open(ctx, e.State)
	if err != nil {
		return nil
	}
	defer s.Close()
	names, _ = state.Read(ctx, s, func(v *state.View) ([]string, error) { return listNames(v, kinds) })
	return names
}

// nameKinds says what values name, by the option or word, where need be with its command before it.
var nameKinds = map[string]string{
	"environment": "environments", "model": "environments", "switch name": "environments",
	"destroy-environment name": "environments", "show-model name": "environments",
	"service": "services", "service,...": "services", "a": "services", "b": "services",
	"unit": "units", "unit action key=value": "units", "id or unit": "units", "exclude": "units",
	"machine": "machines", "to": "machines", "target": "units machines", "glob": "services units",
}

func listNames(v *state.View, kinds string) (names []string, err error) {
	services, servicesErr := v.Services()
	units, unitsErr := v.Units("")
	machines, machinesErr := v.Machines()
	add := func(kind, name string) {
		if strings.Contains(kinds, kind) {
			names = append(names, name)
		}
	}
	for _, s := range services {
		add("services", s.Name)
	}
	for _, u := range units {
		add("units", u.Name)
	}
	for _, m := range machines {
		add("machines", m.ID)
	}
	return names, errors.Join(servicesErr, unitsErr, machinesErr)
}
