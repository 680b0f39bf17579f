package juju

import (
	"errors"
	"io"
	"regexp"
	"slices"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
)

// listKnown adds the existing names to an error about an unknown name.
func (o *operator) listKnown(err error) error {
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}
	missing := regexp.MustCompile(`\b(unit|machine|application|storage) "[^"]*" not found`).FindStringSubmatch(err.Error())
	if missing == nil {
		return err
	}

	kind := missing[1] + "s"
	what := kind
	switch kind {
	case "applications":
		kind = "services"
	case "storages":
		what = "storage"
	}

	return console.Hint(err, listHint(what, o.known(kind)))
}

// known returns the names that there are, of services, units, machines or storages; none if they cannot be read.
func (o *operator) known(kind string) []string {
	silent := *o // it was warned of what is wrong with the environment
	silent.streams.Err = io.Discard
	names, _ := readChosen(&silent, func(v *state.View) ([]string, error) { return listNames(v, kind) })
	slices.SortFunc(names, charm.CompareUnits)
	return names
}
