package juju

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"strings"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
)

// environmentName takes [bijou:][admin/]NAME, as juju shows it to programs.
func environmentName(model string) string {
	return strings.TrimPrefix(strings.TrimPrefix(model, controllerName+":"), modelOwner+"/")
}

// modelInfo is an environment as Juju 3 shows it.
type modelInfo struct {
	Name           string         `json:"name" yaml:"name"`
	ShortName      string         `json:"short-name" yaml:"short-name"`
	UUID           string         `json:"model-uuid" yaml:"model-uuid"`
	Type           string         `json:"model-type" yaml:"model-type"`
	ControllerUUID string         `json:"controller-uuid" yaml:"controller-uuid"` // the environment's own
	Controller     string         `json:"controller-name" yaml:"controller-name"`
	IsController   bool           `json:"is-controller" yaml:"is-controller"`
	Cloud          string         `json:"cloud" yaml:"cloud"`
	Life           state.Life     `json:"life" yaml:"life"`
	Status         jujuStatusInfo `json:"status" yaml:"status"`
}

func newModelInfo(e home.Environment) modelInfo {
	info := modelInfo{
		Name: modelOwner + "/" + e.Name, ShortName: e.Name, UUID: e.UUID, Type: "iaas", ControllerUUID: e.UUID, Controller: controllerName,
		Cloud: e.Provider, Life: state.Alive, Status: jujuStatusInfo{Current: "available"},
	}
	if e.Phase == home.Removing {
		info.Life, info.Status.Current = state.Dying, "destroying"
	}
	return info
}

type showModelCmd struct {
	Name   string `arg:"" optional:"" help:"The environment, if not given by -e."`
	Format string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
}

// Run prints what environment.yaml says of it.
func (c showModelCmd) Run(o *operator) error {
	e, err := o.home.Choose(cmp.Or(environmentName(c.Name), o.name))
	if err != nil {
		return err
	}
	return o.encode(c.Format, map[string]modelInfo{e.Name: newModelInfo(e)})
}

type versionCmd struct {
	All    bool   `help:"Of bijou, too."`
	Format string `enum:"plain,yaml,json" default:"plain" placeholder:"FORMAT" help:"plain, yaml or json; default plain."`
}

// Run prints the version in the form that Juju's own has, with bijou as the release.
func (c versionCmd) Run(o *operator) error {
	version := charm.JujuVersion + "-bijou-" + runtime.GOARCH
	if c.Format == "plain" && !c.All {
		_, err := fmt.Fprintln(o.streams.Out, version)
		return err
	}
	return o.encode(c.Format, map[string]string{"version": version, "bijou-version": o.parts.Version})
}

// resetFlags put values back to their defaults beside those that are set.
type resetFlags struct {
	Reset []string `placeholder:"KEY,..." help:"Put these back to their defaults."`
}

// asks reports whether nothing is to be changed.
func (f resetFlags) asks(words []string) bool {
	return len(f.Reset) == 0 && (len(words) == 0 || len(words) == 1 && !strings.Contains(words[0], "="))
}

type modelConfigCmd struct {
	Words  []string `arg:"" optional:"" name:"key=value" help:"Values to set. One key alone: print its value. None: show all."`
	Format string   `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"yaml or json; default yaml."`
	resetFlags
}

// modelStatusInterval is Juju's name of state.StatusInterval.
const modelStatusInterval = "update-status-hook-interval"

// Run does what get-environment and set-environment do.
func (c modelConfigCmd) Run(o *operator) error {
	words := c.Words
	for _, key := range c.Reset {
		words = append(words, key+"=")
	}
	for i, word := range words {
		if rest, ok := strings.CutPrefix(word, modelStatusInterval); ok {
			words[i] = state.StatusInterval + rest
		}
	}
	switch {
	case !c.asks(c.Words):
		return setEnvironmentCmd{words}.Run(o)
	case len(words) == 1:
		return getEnvironmentCmd{words[0]}.Run(o)
	}
	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}
	all := map[string]map[string]any{}
	for key, value := range environmentValues(e) {
		all[key] = map[string]any{"Value": value, "Source": "default"}
		if _, set := e.Config[key]; set {
			all[key]["Source"] = "model"
		}
	}
	all[modelStatusInterval] = all[state.StatusInterval]
	return o.encode(c.Format, all)
}

type environmentsCmd struct{}

// Run prints the names, the one in use marked by a star.
func (environmentsCmd) Run(o *operator) error {
	names, err := o.home.Names()
	if err != nil {
		return err
	}
	current := o.home.Current()
	for _, name := range names {
		mark := " "
		if name == current {
			mark = "*"
		}
		fmt.Fprintf(o.streams.Out, "%s %s\n", mark, name)
	}
	return nil
}

type switchCmd struct {
	Name string `arg:"" optional:"" help:"The environment; without it the one in use is printed."`
}

// Run makes the environment the one in use. $JUJU_ENV takes precedence over it.
func (c switchCmd) Run(o *operator) error {
	if c.Name == "" {
		e, err := o.home.Choose(o.name)
		if err == nil {
			fmt.Fprintln(o.streams.Out, e.Name)
		}
		return err
	}
	e, err := o.home.Environment(environmentName(c.Name))
	if err != nil {
		return err
	}
	if shell := os.Getenv("JUJU_ENV"); shell != "" && shell != e.Name {
		o.note("warning: JUJU_ENV=%s goes before it, in this shell", shell)
	}
	return o.home.SetCurrent(e.Name)
}
