package multicall

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/agent"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/provision/local"
	"bijou/provision/local/process"
	"bijou/provision/nspawn"
	"bijou/provision/plugin"
	"bijou/provision/provider"
	"bijou/provision/ssh"
	"bijou/state"
	"bijou/state/charm"
)

// builtinProvider is a provider inside the binary: an applet that speaks the providers'
// protocol, like those outside.
type builtinProvider struct {
	name    string
	summary string
	create  plugin.New
	// checkHost returns the series of its machines on this host, "" for any, or why it can
	// have none; nil: nothing keeps it from that.
	checkHost func(config map[string]string) (series string, err error)
}

func builtinProviders() []builtinProvider {
	return []builtinProvider{
		{state.ProviderLocal, "machines that are folders and processes of this host", newLocal, hostSeries},
		{nspawn.Name, "machines that are system containers of this host", adaptNew(nspawn.New), nspawn.HostSeries},
		{ssh.Name, "hosts that are there already, and reached by ssh", adaptNew(ssh.New), nil},
	}
}

// hostSeries returns "" if it cannot be told.
func hostSeries(map[string]string) (string, error) {
	series, err := provider.SeriesOf("/")
	if err != nil || charm.CheckSeries(series) != nil {
		return "", nil
	}
	return series, nil
}

func newLocal(env provider.Environment) (provider.Provider, error) {
	for key := range env.Config {
		return nil, fmt.Errorf("%s has no setting %q: it has none", state.ProviderLocal, key)
	}
	return local.New(local.Options{
		Dir:         filepath.Join(env.Dir, "machines"),
		Environment: env.UUID,
		Agent: func(spec provider.Spec) (process.Detached, error) {
			e, err := home.Load(env.Dir)
			return machineProcess(e, spec.Machine), err
		},
	}), nil
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

func providerApplets() (applets []Applet) {
	for _, b := range builtinProviders() {
		applets = append(applets, Applet{
			plugin.Prefix + b.name, "the provider " + b.name + ", started by the provisioner: " + b.summary,
			func(c call) int { return serveProvider(c, b) },
		})
	}
	return applets
}

const providerSummary = `The provider %s: %s. The provisioner starts it and speaks to it; it is of no use by itself.

Examples:
  juju bootstrap --provider %s`

func serveProvider(c call, b builtinProvider) int {
	var grammar struct{}
	command := console.Command{Name: c.name, Summary: fmt.Sprintf(providerSummary, b.name, b.summary, b.name), Grammar: &grammar}
	if _, err := console.Parse(c.streams, command, c.args); err != nil {
		return console.Report(c.streams.Err, err)
	}
	setLogOutput(c.streams.Err)
	err := plugin.Serve(b.create)
	if errors.Is(err, plugin.ErrByHand) {
		err = console.Hint(console.Usage(err), "juju bootstrap --provider "+b.name+" makes an environment with it")
	}
	return console.Report(c.streams.Err, err)
}

func isBuiltin(name string) bool {
	return slices.ContainsFunc(builtinProviders(), func(b builtinProvider) bool { return b.name == name })
}

// providerFolder returns a function that makes the folder for the sockets of an
// environment's provider.
func providerFolder(e home.Environment) func() (string, error) {
	return func() (string, error) { return agent.ProviderFolder(e.UUID) }
}

// newProvider runs the environment's provider in a process of its own. Its configuration
// is read again before each call.
func newProvider(ctx context.Context, s *state.State, e home.Environment) (*plugin.Client, error) {
	if e.Dir == "" {
		return nil, errors.New("cannot provision: a provider needs the environment's folder: give --env DIR")
	}
	var name string
	err := viewRetrying(ctx, s, func(v *state.View) error {
		env, err := v.Environment()
		name = env.Provider
		return err
	})
	if err != nil {
		return nil, err
	}
	return plugin.NewClient(plugin.Options{
		Name: name, Sockets: providerFolder(e),
		Find:   func(sum string) (string, error) { return findProvider(name, sum, e) },
		Demand: func(ctx context.Context) (plugin.Demand, error) { return readDemand(ctx, s) },
		Wanted: func(ctx context.Context) (w plugin.Wanted, err error) {
			err = s.View(ctx, func(v *state.View) error {
				env, err := v.Environment()
				w = providerWanted(e, env)
				return err
			})
			return w, err
		},
	}), nil
}

func providerWanted(e home.Environment, env state.Environment) plugin.Wanted {
	w := plugin.Wanted{Environment: provider.Environment{
		UUID: env.UUID, Name: env.Name, Dir: e.Dir, Shared: strings.HasPrefix(e.State, "sqlite:"), Config: env.ProviderConfig(),
	}}
	if !isBuiltin(env.Provider) {
		w.SHA256 = env.Config[state.ProviderSHA256]
	}
	return w
}

func readDemand(ctx context.Context, s *state.State) (d plugin.Demand, err error) {
	err = s.View(ctx, func(v *state.View) error {
		machines, err := v.Machines()
		if err != nil {
			return err
		}
		made, err := v.MachinesMade()
		switch {
		case len(machines) > 1:
			d = plugin.Present
		case made > 1:
			d = plugin.Past
		default:
			d = plugin.Never
		}
		return err
	})
	return d, err
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
		err = fmt.Errorf("%w; if it is meant to be: juju set-environment %s=%s", err, state.ProviderSHA256, other.Got)
	}
	return path, err
}

// providerFolders are searched in order.
func providerFolders(e home.Environment) []string {
	return slices.Concat(
		filepath.SplitList(os.Getenv("BIJOU_PLUGIN_PATH")),
		[]string{filepath.Join(e.Dir, "providers"), "/usr/local/lib/bijou/providers", "/usr/lib/bijou/providers"},
		filepath.SplitList(os.Getenv("PATH")),
	)
}
