package juju

import (
	"cmp"
	"fmt"
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
