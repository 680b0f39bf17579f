package juju

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strings"

	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

type setEnvironmentCmd struct {
	Values []string `arg:"" name:"key=value" help:"Values; an empty one goes back to the default."`
}

func environmentHelp() string {
	b := strings.Builder{}
	b.WriteString("Settings:\n")
	for _, s := range state.EnvironmentSettings() {
		fmt.Fprintf(&b, "  %s: %s\n      %s; default: %s\n", s.Key, s.Meaning, s.Values, s.Default)
	}
	b.WriteString("  PROVIDER.KEY: whatever the environment's provider takes\n      as nspawn.apt-repository\n")
	return b.String()
}

// Run sets the values, all or none.
func (c setEnvironmentCmd) Run(o *operator) error {
	pairs, err := parsePairs(c.Values)
	if err != nil {
		return err
	}
	given, changes := map[string]string{}, map[string]*string{}
	for key, value := range pairs {
		changes[key] = nil
		if value != "" {
			given[key], changes[key] = value, &value
		}
	}
	return o.update(func(tx *state.Tx) error {
		env, err := tx.Environment()
		if err != nil {
			return err
		}
		if err := o.parts.Providers.CheckSettings(env.Provider, given); err != nil {
			return fmt.Errorf("cannot set environment: %w", err)
		}
		return tx.SetEnvironment(changes)
	})
}

type getEnvironmentCmd struct {
	Key    string `arg:"" optional:"" help:"Print this value only."`
	Format string `enum:"yaml,json" default:"yaml" placeholder:"FORMAT" help:"Of all values: yaml or json; default yaml."`
}

// Run prints one value, or all as YAML, defaults applied.
func (c getEnvironmentCmd) Run(o *operator) error {
	e, err := readChosen(o, (*state.View).Environment)
	if err != nil {
		return err
	}
	values := environmentValues(e)
	unknown := e.UnknownSettings()
	if len(unknown) > 0 && (c.Key == "" || slices.Contains(unknown, c.Key)) {
		o.note("unknown to this version, and kept: %s", strings.Join(unknown, ", "))
	}
	if c.Key == "" {
		return o.encode(c.Format, values)
	}
	value, ok := values[c.Key]
	if !ok {
		return fmt.Errorf("unknown environment setting %q: there are %s", c.Key, strings.Join(slices.Sorted(maps.Keys(values)), ", "))
	}
	_, err = fmt.Fprintln(o.streams.Out, value)
	return err
}

func environmentValues(e state.Environment) map[string]any {
	values := map[string]any{
		"name": e.Name, "uuid": e.UUID, "provider": e.Provider, "default-series": e.DefaultSeries,
		state.RetryHooks: e.RetryHooks(), state.StatusInterval: cmp.Or(e.Config[state.StatusInterval], "5m"),
		state.HookTimeout: cmp.Or(e.Config[state.HookTimeout], "0"), state.HookConcurrency: "default",
		state.AllowOtherSeries: e.AllowsOtherSeries(), state.HarvestMode: string(e.Harvest()),
	}
	for key, value := range e.ProviderConfig() {
		values[e.Provider+"."+key] = value
	}
	for _, key := range e.UnknownSettings() {
		values[key] = e.Config[key]
	}
	if sum := e.Config[state.ProviderSHA256]; sum != "" {
		values[state.ProviderSHA256] = sum
	}
	if n := e.HookConcurrency(); n > 0 {
		values[state.HookConcurrency] = n
	}
	return values
}

// environmentName takes [bijou:][admin/]NAME, as juju shows it to programs.
func environmentName(model string) string {
	return strings.TrimPrefix(strings.TrimPrefix(model, controllerName+":"), modelOwner+"/")
}

// modelInfo is an environment as Juju 3 shows it.
type modelInfo struct {
	Name           string      `json:"name" yaml:"name"`
	ShortName      string      `json:"short-name" yaml:"short-name"`
	UUID           string      `json:"model-uuid" yaml:"model-uuid"`
	Type           string      `json:"model-type" yaml:"model-type"`
	ControllerUUID string      `json:"controller-uuid" yaml:"controller-uuid"` // the environment's own
	Controller     string      `json:"controller-name" yaml:"controller-name"`
	IsController   bool        `json:"is-controller" yaml:"is-controller"`
	Cloud          string      `json:"cloud" yaml:"cloud"`
	Life           state.Life  `json:"life" yaml:"life"`
	Status         status.Info `json:"status" yaml:"status"`
}

func newModelInfo(e home.Environment) modelInfo {
	info := modelInfo{
		Name: modelOwner + "/" + e.Name, ShortName: e.Name, UUID: e.UUID, Type: "iaas", ControllerUUID: e.UUID, Controller: controllerName,
		Cloud: e.Provider, Life: state.Alive, Status: status.Info{Current: "available"},
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
		return getEnvironmentCmd{Key: words[0]}.Run(o)
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
	for _, key := range e.UnknownSettings() {
		all[key]["Source"] = "unknown"
	}
	all[modelStatusInterval] = all[state.StatusInterval]
	return o.encode(c.Format, all)
}

type environmentsCmd struct {
	Format string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"tabular, yaml or json; default tabular."`
}

// Run prints the names, the one in use marked by a star.
func (c environmentsCmd) Run(o *operator) error {
	names, err := o.home.Names()
	if err != nil {
		return err
	}
	current, infos := o.home.Current(), []modelInfo{}
	for _, name := range names {
		mark := map[bool]string{true: "*", false: " "}[name == current]
		if c.Format == "tabular" {
			fmt.Fprintf(o.streams.Out, "%s %s\n", mark, name)
			continue
		}
		e, err := o.home.Environment(name)
		if err != nil {
			return err
		}
		infos = append(infos, newModelInfo(e))
	}
	if c.Format != "tabular" {
		err = o.encode(c.Format, map[string]any{"models": infos, "current-model": current})
	}
	return err
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
