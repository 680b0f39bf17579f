// Package providers knows which providers there are: those inside the binary, each an
// applet, and executables outside. It starts the one of an environment, asks what one can
// do, and reaches the machines it has made. How a provider makes them is in provision.
// multicall and multicall/agents import it.
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

// builtinProvider is a provider inside the binary: an applet that speaks the providers'
// protocol, like those outside.
type builtinProvider struct {
	name    string
	summary string
	create  plugin.New
	// checkSettings refuses settings that somebody gives and it does not have. What an environment has is
	// ignored instead: a newer binary may have set it.
	checkSettings func(config map[string]string) error
	// checkHost returns the series of its machines on this host, "" for any, or why it can
	// have none; nil: nothing keeps it from that.
	checkHost func(config map[string]string) (series string, err error)
	// checkSeries refuses a series that its machines cannot have on this host; nil: checkHost says all.
	checkSeries func(config map[string]string, series string) error
}

// All are the providers, built in or plugins, as the operator's commands use them.
type All struct{}

// builtinProviders returns the providers inside this binary.
func builtinProviders() []builtinProvider {
	return []builtinProvider{
		{
			name:          state.ProviderLocal,
			summary:       "machines that are folders and processes of this host",
			create:        newLocal,
			checkSettings: checkLocalSettings,
			checkHost:     hostSeries,
		},
		{
			name:          nspawn.Name,
			summary:       "machines that are system containers of this host",
			create:        adaptNew(nspawn.New),
			checkSettings: nspawn.CheckSettings,
			checkHost:     nspawn.HostSeries,
			checkSeries:   nspawn.CheckSeries,
		},
		{
			name:          ssh.Name,
			summary:       "hosts that are there already, and reached by ssh",
			create:        adaptNew(ssh.New),
			checkSettings: ssh.CheckSettings,
		},
	}
}

// hostSeries returns the series of this host's system, or "" if it is unknown.
func hostSeries(map[string]string) (string, error) {
	series, err := provider.SeriesOf("/")
	if err != nil || charm.CheckSeries(series) != nil {
		return "", nil
	}
	return series, nil
}

func checkLocalSettings(config map[string]string) error {
	for _, key := range slices.Sorted(maps.Keys(config)) {
		return fmt.Errorf("%s has no setting %q: it has none", state.ProviderLocal, key)
	}
	return nil
}

// newLocal returns the provider local, whose machines run the environment's own tools.
func newLocal(env provider.Environment) (provider.Provider, error) {
	return local.New(local.Options{
		Dir:         filepath.Join(env.Dir, "machines"),
		Environment: env.UUID,
		Agent: func(spec provider.Spec) (process.Detached, error) {
			e, err := home.Load(env.Dir)
			return MachineProcess(e, spec.Machine, childenv.Machine), err
		},
	}), nil
}

// MachineProcess returns how to run a local machine's agent: from the environment's own
// tools, since the binary that runs now may be gone later. The agent of machine 0, which an
// operator's command starts, is a childenv.Background.
func MachineProcess(e home.Environment, id string, child childenv.Child) process.Detached {
	return process.Detached{
		Path:  filepath.Join(e.ToolsDir(), "machine-agent"),
		Args:  []string{"machine-agent", "--machine", id, "--env", e.Dir},
		Log:   e.LogFile(id),
		Child: child,
	}
}

// adaptNew returns an untyped nil beside an error: a nil pointer in an interface is not nil.
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

const providerSummary = `The provider %s: %s. The provisioner starts it and speaks to it; it is of no use by itself.

Examples:
  juju bootstrap --provider %s`

// serveProvider runs a builtin provider's applet. If a person calls it, it prints a hint.
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
			"juju bootstrap --provider "+b.name+" makes a model with it")
	}

	return console.Report(c.Streams.Err, err)
}

func isBuiltin(name string) bool {
	return slices.ContainsFunc(builtinProviders(), func(b builtinProvider) bool { return b.name == name })
}

// providerFolder returns a function that makes the folder for the sockets of an
// environment's provider.
func providerFolder(e home.Environment) func() (string, error) {
	return func() (string, error) { return agent.ProviderFolder(e.UUID) }
}

// NewClient returns a client of the environment's provider, which runs in a process of its
// own. Its configuration is read again before each call.
func NewClient(ctx context.Context, s *state.State, e home.Environment) (*plugin.Client, error) {
	if e.Dir == "" {
		return nil, errors.New("cannot provision: no model's directory given: give --env DIR")
	}
	env, err := daemon.ReadRetrying(ctx, s, (*state.View).Environment)
	if err != nil {
		return nil, err
	}

	name := env.Provider
	return plugin.NewClient(plugin.Options{
		Name:    name,
		Sockets: providerFolder(e),
		Find:    func(sum string) (string, error) { return findProvider(name, sum, e) },
		Demand:  func(ctx context.Context) (plugin.Demand, error) { return state.Read(ctx, s, readDemand) },
		Wanted: func(ctx context.Context) (plugin.Wanted, error) {
			env, err := state.Read(ctx, s, (*state.View).Environment)
			return providerWanted(e, env), err
		},
	}), nil
}

// providerWanted returns the environment as the provider's process gets it, and the sum that a plugin's
// executable must have.
func providerWanted(e home.Environment, env state.Environment) plugin.Wanted {
	w := plugin.Wanted{Environment: provider.Environment{
		UUID:   env.UUID,
		Name:   env.Name,
		Dir:    e.Dir,
		Shared: strings.HasPrefix(e.State, "sqlite:"),
		Config: env.ProviderConfig(),
	}}

	if !isBuiltin(env.Provider) {
		w.SHA256 = env.Config[state.ProviderSHA256]
	}
	return w
}

// readDemand returns how much the environment needs its provider: it has machines, it had some, or it never
// had any.
func readDemand(v *state.View) (plugin.Demand, error) {
	machines, err := v.Machines()
	if err != nil {
		return "", err
	}

	made, err := v.NextMachine()
	switch {
	case len(machines) > 1:
		return plugin.Present, err
	case made > 1:
		return plugin.Past, err
	}

	return plugin.Never, err
}

// findProvider refuses an executable other than the accepted one.
func findProvider(name, sum string, e home.Environment) (string, error) {
	if isBuiltin(name) {
		return plugin.Find(name, []string{e.ToolsDir()})
	}
	path, err := plugin.Find(name, providerFolders(e))
	if err != nil {
		return "", err
	}

	err = plugin.CheckSum(path, sum)
	if other, ok := errors.AsType[*plugin.MismatchError](err); ok {
		err = fmt.Errorf("%w; to accept it: juju set-environment %s=%s",
			err, state.ProviderSHA256, other.Got)
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
