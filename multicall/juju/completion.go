package juju

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
)

// completionTimeout is short, since the user has pressed a key and is waiting.
const completionTimeout = time.Second

// completeNames returns the names that can stand for the wanted option or argument: names of environments, or
// of the chosen environment's entities. It leaves out names that it cannot read.
func completeNames(ctx context.Context, parts Parts, w console.Wanted) (names []string) {
	h, err := home.Find()
	if err != nil {
		return nil
	}

	// A key for only this command takes precedence.
	kinds := cmp.Or(nameKinds()[w.Command+" "+w.Value], nameKinds()[w.Value])
	if kinds == "" {
		return nil
	}
	if kinds == "environments" {
		names, _ = h.Names()
		return names
	}

	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()

	o := &operator{
		ctx:     ctx,
		streams: console.Streams{Err: io.Discard}, // notes would disturb the user's command line
		home:    h,
		name:    cmp.Or(w.Flags["environment"], w.Flags["model"]),
		parts:   parts,
	}

	names, _ = readChosen(o, func(v *state.View) ([]string, error) { return listNames(v, kinds) })
	return names
}

// nameKinds returns, for options and arguments, the kinds of entities that their values name, separated by
// spaces. A key is the name of an option or argument, which can have several words, such as "id or unit". A key
// that is valid for only one command begins with that command, such as "switch name".
func nameKinds() map[string]string {
	return map[string]string{
		"environment":           "environments",
		"model":                 "environments",
		"switch name":           "environments",
		"destroy-model name":    "environments",
		"show-model name":       "environments",
		"service":               "services",
		"application":           "services",
		"application,...":       "services",
		"a":                     "services",
		"b":                     "services",
		"unit":                  "units",
		"unit action key=value": "units",
		"id or unit":            "units",
		"exclude":               "units",
		"related-unit":          "units",
		"machine":               "machines",
		"to":                    "machines",
		"target":                "units machines",
		"glob":                  "services units",
		"selector":              "services units machines",
	}
}

// listNames returns the names of all services and units, and the IDs of all machines and storages, if kinds
// contains the plural word for them. With an error, which can also be about other kinds, it returns the names that
// it could read.
func listNames(v *state.View, kinds string) (names []string, err error) {
	services, servicesErr := v.Services()
	units, unitsErr := v.Units("")
	machines, machinesErr := v.Machines()
	storages, storagesErr := v.Storages()
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
	for _, s := range storages {
		add("storages", s.ID)
	}

	return names, errors.Join(servicesErr, unitsErr, machinesErr, storagesErr)
}
