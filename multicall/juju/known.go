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

// withKnownNames adds a hint with the existing names to an error about an unknown unit, machine, application or
// storage. It returns any other error unchanged.
func (o *operator) withKnownNames(err error) error {
	if !errors.Is(err, state.ErrNotFound) {
		return err
	}
	// The error has no field for the kind of the name, so its text must show the kind.
	match := regexp.MustCompile(`\b(unit|machine|application|storage) "[^"]*" not found`).FindStringSubmatch(err.Error())
	if match == nil {
		return err
	}

	// kind is a word for o.known, and label is a word for people.
	kind := match[1] + "s"
	label := kind
	switch kind {
	case "applications":
		kind = "services"
	case "storages":
		label = "storage"
	}

	return console.Hint(err, listHint(label, o.known(kind)))
}

// known returns the existing names of services, units, machines or storages. It returns none if it cannot read
// them.
func (o *operator) known(kind string) []string {
	// The command has already printed the warnings about the environment.
	silent := *o
	silent.streams.Err = io.Discard
	// Names are only suggested, so an error means that there are none.
	names, _ := readChosen(&silent, func(v *state.View) ([]string, error) { return listNames(v, kind) })
	slices.SortFunc(names, charm.CompareUnits)
	return names
}
