// Package providers finds providers, which are applets of this binary or other executables. It starts the
// provider of an environment, queries its capabilities, and returns the access to its machines. The packages
// below provision create the machines.
package providers

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/agent"
	"bijou/multicall/applet"
	"bijou/multicall/console"
	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/provision/local"
	"bijou/provision/local/process"
	"bijou/provision/nspawn"
	"bijou/provision/plugin"
	"bijou/provision/provider"
	"bijou/provision/ssh"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/childenv"
)

// builtinProvider is a provider inside the binary. It is an applet with the same protocol as other providers.
type builtinProvider struct {
	name    string
	summary string
	create  plugin.New
	// checkSettings returns an error if an operator gives a setting that the provider does not have or, for some
	// settings, an invalid value. Unknown settings of an existing environment are ignored instead, since a newer
	// version of bijou may have set them.
	checkSettings func(config map[string]string) error
	// checkHost returns the series of the provider's machines on this host, or "" for any series. It returns
	// an error if the provider cannot have machines on this host. If checkHost is nil, the provider can have
	// machines of any series.
	checkHost func(config map[string]string) (series string, err error)
	// checkSeries returns an error if the provider's machines cannot have the series on this host. It is nil
	// if checkHost is sufficient.
	checkSeries func(config map[string]string, series string) error
}

// All stands for all providers, built in or plugins. It implements juju.Providers for the operator's
// commands.
type All struct{}

// builtinProviders returns the providers inside this binary.
func builtinProviders() []builtinProvider {
	return []builtinProvider{
		{
			name:          state.ProviderLocal,
			summary:       "machines that are directories and processes on this host",
			create:        newLocal,
			checkSettings: checkLocalSettings,
			checkHost:     hostSeries,
		},
		{
			name:          nspawn.Name,
			summary:       "machines that are system containers on this host",
			create:        adaptNew(nspawn.New),
			checkSettings: nspawn.CheckSettings,
			checkHost:     nspawn.HostSeries,
			checkSeries:   nspawn.CheckSeries,
		},
		{
			name:          ssh.Name,
			summary:       "existing hosts, reached by ssh",
			create:        adaptNew(ssh.New),
			checkSettings: ssh.CheckSettings,
		},
	}
}

// hostSeries returns the series of this host's system, or "" if it is unknown or no valid name of a series. It is a
// checkHost that ignores the configuration, and never fails.
func hostSeries(map[string]string) (string, error) {
	series, err := provider.SeriesOf("/")
	if err != nil || charm.CheckSeries(series) != nil {
		return "", nil
	}
	return series, nil
}

// checkLocalSettings returns an error if there are any settings, since the provider local has none.
func checkLocalSettings(config map[string]string) error {
	if len(config) == 0 {
		return nil
	}

	first := slices.Min(slices.Collect(maps.Keys(config)))
	return fmt.Errorf("%s has no setting %q: this provider has no settings", state.ProviderLocal, first)
}

// newLocal returns the provider local, whose machines run the environment's own tools.
func newLocal(env provider.Environment) (provider.Provider, error) {
	return local.New(local.Options{
		Dir:         filepath.Join(env.Dir, "machines"),
		Environment: env.UUID,
		Agent: func(spec provider.Spec) (process.Detached, error) {
			e, err := home.Load(env.Dir)
			if err != nil {
				return process.Detached{}, err
			}
			return MachineProcess(e, spec.Machine, childenv.Machine), nil
		},
	}), nil
}

// MachineProcess describes the process of a local machine's agent. The process runs the environment's own tools, since
// the running binary may be removed later. child is childenv.Background for the agent of machine 0, which an operator's
// command starts, and childenv.Machine for other machines.
func MachineProcess(e home.Environment, id string, child childenv.Child) process.Detached {
	return process.Detached{
		Path:  filepath.Join(e.ToolsDir(), "machine-agent"),
		Args:  []string{"machine-agent", "--machine", id, "--env", e.Dir},
		Log:   e.LogFile(id),
		Child: child,
	}
}

// adaptNew adapts a provider's function New. After an error it returns an untyped nil, since a nil pointer in
// an interface is not nil.
func adaptNew[P provider.Provider](create func(provider.Environment) (P, error)) plugin.New {
	return func(env provider.Environment) (provider.Provider, error) {
		p, err := create(env)
		if err != nil {
			return nil, err
		}
		return p, nil
	}
}

// Applets returns the applets of the providers inside the binary.
func Applets() (applets []applet.Applet) {
	for _, b := range builtinProviders() {
		applets = append(applets, applet.Applet{
			Name:    plugin.Prefix + b.name,
			Summary: "the provider " + b.name + ", started by the provisioner: " + b.summary,
			Run:     func(c applet.Call) int { return serveProvider(c, b) },
		})
	}

	return applets
}

const providerSummary = `The provider %s: %s. Only the provisioner starts this program; it is not a command for users.

Examples:
  juju bootstrap --provider %s`

// serveProvider runs a builtin provider's applet, and returns its exit code. If a person calls the applet,
// serveProvider prints an error with a hint.
func serveProvider(c applet.Call, b builtinProvider) int {
	var grammar struct{}
	command := console.Command{
		Name:    c.Name,
		Summary: fmt.Sprintf(providerSummary, b.name, b.summary, b.name),
		Grammar: &grammar,
	}
	if _, err := console.Parse(c.Streams, command, c.Args); err != nil {
		return console.Report(c.Streams.Err, err)
	}

	applet.SetLogOutput(c.Streams.Err)
	err := plugin.Serve(b.create)
	if errors.Is(err, plugin.ErrByHand) {
		err = console.Hint(console.Usage(err),
			"juju bootstrap --provider "+b.name+" creates a model with it")
	}

	return console.Report(c.Streams.Err, err)
}

// isBuiltin reports whether the provider called name is part of this binary.
func isBuiltin(name string) bool {
	_, ok := findBuiltin(name)
	return ok
}

// findBuiltin returns the provider of this binary that is called name, or false if there is none.
func findBuiltin(name string) (builtinProvider, bool) {
	for _, b := range builtinProviders() {
		if b.name == name {
			return b, true
		}
	}
	return builtinProvider{}, false
}

// socketFolder returns a function that creates the directory for the sockets of an environment's provider.
func socketFolder(e home.Environment) func() (string, error) {
	return func() (string, error) { return agent.ProviderFolder(e.UUID) }
}

// NewClient returns a client for the environment's provider, which runs in a separate process. NewClient
// waits until the store answers. The client reads the provider's configuration again before each call. The
// caller must call Close.
func NewClient(ctx context.Context, s *state.State, e home.Environment) (*plugin.Client, error) {
	if e.Dir == "" {
		return nil, errors.New("cannot provision: no model directory given: give --env DIR")
	}
	env, err := daemon.ReadRetrying(ctx, s, (*state.View).Environment)
	if err != nil {
		return nil, err
	}

	name := env.Provider
	return plugin.NewClient(plugin.Options{
		Name:    name,
		Sockets: socketFolder(e),
		Find:    func(sum string) (string, error) { return findProvider(name, sum, e) },
		Demand:  func(ctx context.Context) (plugin.Demand, error) { return state.Read(ctx, s, readDemand) },
		Wanted: func(ctx context.Context) (plugin.Wanted, error) {
			env, err := state.Read(ctx, s, (*state.View).Environment)
			return providerWanted(e, env), err
		},
	}), nil
}

// providerWanted returns the environment in the form that the provider's process gets, and the checksum that a
// plugin's executable must have.
func providerWanted(e home.Environment, env state.Environment) plugin.Wanted {
	w := plugin.Wanted{Environment: provider.Environment{
		UUID:   env.UUID,
		Name:   env.Name,
		Dir:    e.Dir,
		Shared: strings.HasPrefix(e.State, "sqlite:"), // the state is a file
		Config: env.ProviderConfig(),
	}}

	if !isBuiltin(env.Provider) {
		w.SHA256 = env.Config[state.ProviderSHA256]
	}
	return w
}

// readDemand returns whether the environment has machines, had some, or never had any. It does not count machine 0.
func readDemand(v *state.View) (plugin.Demand, error) {
	// These include machines whose records do not decode, since such a machine can have an instance.
	machines, err := v.MachineIDs()
	if err != nil {
		return "", err
	}
	added, err := v.NextMachine() // how many machines have ever been added
	if err != nil {
		return "", err
	}

	// Both numbers include machine 0.
	switch {
	case len(machines) > 1:
		return plugin.Present, nil
	case added > 1:
		return plugin.Past, nil
	}

	return plugin.Never, nil
}

// findProvider returns the path of a provider's executable. It returns an error for a plugin whose checksum is not
// sum. If sum is empty, it accepts any checksum. A builtin provider's executable is a symlink in the environment's
// tools, whose checksum is not checked.
func findProvider(name, sum string, e home.Environment) (string, error) {
	if isBuiltin(name) {
		return plugin.Find(name, []string{e.ToolsDir()})
	}
	path, err := plugin.Find(name, providerFolders(e))
	if err != nil {
		return "", err
	}

	err = plugin.CheckSum(path, sum)
	if mismatch, ok := errors.AsType[*plugin.MismatchError](err); ok {
		err = fmt.Errorf("%w; to accept it: juju set-environment %s=%s",
			err, state.ProviderSHA256, mismatch.Got)
	}

	return path, err
}

// providerFolders returns the directories that are searched for a provider, in order.
func providerFolders(e home.Environment) []string {
	return slices.Concat(
		filepath.SplitList(os.Getenv("BIJOU_PLUGIN_PATH")),
		[]string{filepath.Join(e.Dir, "providers"), "/usr/local/lib/bijou/providers", "/usr/lib/bijou/providers"},
		filepath.SplitList(os.Getenv("PATH")),
	)
}
