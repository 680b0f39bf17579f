package juju

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

type scaleCmd struct {
	Words    []string `arg:"" name:"app=n" help:"An application, and the number of its units."`
	Replicas *int     `placeholder:"N" help:"Set the number of units, if no word gives it."`
	To       string   `placeholder:"MACHINE" help:"Put new units on MACHINE, as juju add-unit does."`
	unitRemovalFlags
	waitFlags
}

// Run adds units, or removes the newest units, so that the application has the wanted number of units.
func (c scaleCmd) Run(o *operator) error {
	app, want, err := c.parse()
	if err != nil {
		return console.Hint(console.Usage(err), "as in: juju scale web=3")
	}

	units, err := readChosen(o, func(v *state.View) ([]state.Unit, error) {
		if _, err := v.Service(app); err != nil {
			return nil, err
		}
		return v.Units(app)
	})
	if err != nil {
		return err
	}

	units = slices.DeleteFunc(units, func(u state.Unit) bool { return u.Life != state.Alive })
	switch missing := want - len(units); {
	case missing > 0 && c.DryRun:
		fmt.Fprintf(o.streams.Out, "dry run: %s gets %s\n", app, formatCount(missing, "unit"))
		return nil
	case missing > 0:
		return addUnitCmd{
			Service:        app,
			placementFlags: placementFlags{NumUnits: missing, To: c.To},
			waitFlags:      c.waitFlags,
		}.Run(o)
	case missing < 0:
		return removeUnitCmd{
			Units:            []string{app},
			NumUnits:         -missing,
			unitRemovalFlags: c.unitRemovalFlags, // with --dry-run, if it is given
			waitFlags:        c.waitFlags,
		}.Run(o)
	}

	o.note("%s already has %s", app, formatCount(want, "unit"))
	return nil
}

// parse parses the arguments APP=N, APP N, or APP --replicas N. It also accepts kubectl's KIND APP and KIND/APP
// for APP. want is the number of units. c.Words must not be empty.
func (c scaleCmd) parse() (app string, want int, err error) {
	words := c.Words
	if isKind(words[0]) && len(words) > 1 {
		words = words[1:]
	}

	app, number, joined := strings.Cut(words[0], "=")
	if kind, name, ofKind := strings.Cut(app, "/"); ofKind && isKind(kind) {
		app = name
	}

	rest := words[1:]
	switch {
	case joined && len(rest) == 0 && c.Replicas == nil:
		// The number was given as APP=N.
	case !joined && len(rest) == 1 && c.Replicas == nil:
		number = rest[0]
	case !joined && len(rest) == 0 && c.Replicas != nil:
		number = strconv.Itoa(*c.Replicas)
	default:
		return app, 0, errors.New("want one application and its number of units")
	}

	want, err = strconv.Atoi(number)
	if err != nil || want < 0 {
		return app, 0, fmt.Errorf("cannot scale %s to %q units", app, number)
	}
	return app, want, nil
}
