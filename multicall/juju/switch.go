package juju

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
)

type switchCmd struct {
	Name string `arg:"" optional:"" help:"The model. Without it, the command prints the model in use."`
}

// Run makes the environment the current one. If no name is given, it prints the environment that commands use.
// $JUJU_ENV and $JUJU_MODEL take precedence over the current environment, and -e takes precedence over them.
func (c switchCmd) Run(o *operator) error {
	if c.Name == "" {
		e, err := o.home.Choose(o.name)
		if err != nil {
			return err
		}

		fmt.Fprintln(o.streams.Out, e.Name)
		return nil
	}

	if c.Name == "-" {
		// An error of Names only affects the hint.
		names, _ := o.home.Names()
		return console.Hint(console.Usage(errors.New("no model given: bijou does not remember the previous one")),
			"juju switch NAME; "+listHint("models", names))
	}
	if controller, name, ok := strings.Cut(home.EnvironmentName(c.Name), ":"); ok {
		return console.Hint(console.Usage(fmt.Errorf("cannot switch to controller %q: there are no controllers", controller)),
			"juju switch "+cmp.Or(name, "NAME"))
	}

	e, err := o.home.Environment(home.EnvironmentName(c.Name))
	if err != nil {
		return err
	}

	if shell := home.FromShell(); shell != "" && shell != e.Name {
		variable := "JUJU_ENV"
		if os.Getenv(variable) == "" {
			variable = "JUJU_MODEL"
		}
		o.note("warning: in this shell, %s=%s takes precedence over the chosen model", variable, shell)
	}
	// setCurrent prints a note only if there was a current environment.
	if o.home.Current() == "" {
		o.note("model %q is now in use", e.Name)
	}
	return o.setCurrent(e.Name)
}

// setCurrent makes the environment the current one. It prints a note, unless no environment was the current one
// before.
func (o *operator) setCurrent(name string) error {
	before := o.home.Current()
	if err := o.home.SetCurrent(name); err != nil {
		return err
	}

	switch before {
	case "":
		// No environment was the current one.
	case name:
		o.note("model %q is already in use", name)
	default:
		o.note("model %q is now in use, instead of %q", name, before)
	}
	return nil
}
