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

// builtin is a provider inside the binary: an applet that speaks the providers'
// protocol, like those outside.
type builtin struct {
	name    string
	summary string
	create  plugin.New
	// host says which series it has here, "" for any, or why it can have no machines;
	// nil: nothing keeps it from that.
	host func(config map[string]string) (series string, err error)
}

// builtins are the providers inside the binary.
func builtins() []builtin {
	return []builtin{
		{state.ProviderLocal, "machines that are folders and processes of this host", newLocal, hostSeries},
		{nspawn.Name, "machines that are system containers of this host", newNspawn, nspawn.Host},
		{ssh.Name, "hosts that are there already, and reached by ssh", newSSH, nil},
	}
}

// hostSeries is this host's series; "" if nobody can tell.
func hostSeries(map[string]string) (string, error) {
	series, err := provider.SeriesOf("/")
	if err != nil || charm.CheckSeries(series) != nil {
		return "", nil
	}
	return series, nil
}

// newLocal makes the provider whose machines are this host. Their agents run from
// the environment's own tools, since the binary that runs now may be gone later.
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

// newNspawn makes the provider whose machines are containers.
func newNspawn(env provider.Environment) (provider.Provider, error) {
	p, err := nspawn.New(env)
	if err != nil {
		return nil, err
	}
	return p, nil
}

// newSSH makes the provider whose machines are hosts that are there already.
func newSSH(env provider.Environment) (provider.Provider, error) {
	p, err := ssh.New(env) // not returned as it is: a nil in an interface is not nil
	if err != nil {
		return nil, err
	}
	return p, nil
}

// providerApplets are the applets that the provisioner starts for itself.
func providerApplets() (applets []Applet) {
	for _, b := range builtins() {
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

// serveProvider is the process of a provider.
func serveProvider(c call, b builtin) int {
	var grammar struct{}
	command := console.Command{Name: c.name, Summary: fmt.Sprintf(providerSummary, b.name, b.summary, b.name), Grammar: &grammar}
	if _, err := console.Parse(c.streams, command, c.args); err != nil {
		return console.Report(c.streams.Err, err)
	}
	logTo(c.streams.Err)
	err := plugin.Serve(b.create)
	if errors.Is(err, plugin.ErrByHand) {
		err = console.Hint(console.Usage(err), "juju bootstrap --provider "+b.name+" makes an environment with it")
	}
	return console.Report(c.streams.Err, err)
}

// isBuiltin tells if the provider is inside the binary.
func isBuiltin(name string) bool {
	return slices.ContainsFunc(builtins(), func(b builtin) bool { return b.name == name })
}

// providerFolder makes the folder for the sockets of an environment's provider.
func providerFolder(e home.Environment) func() (string, error) {
	return func() (string, error) { return agent.ProviderFolder(e.UUID) }
}

// newProvider is the provider that the environment was bootstrapped with, in a
// process of its own. What it needs to know is read again before each call.
func newProvider(ctx context.Context, s *state.State, e home.Environment) (*plugin.Client, error) {
	if e.Dir == "" {
		return nil, errors.New("cannot provision: a provider needs the environment's folder: give --env DIR")
	}
	var name string
	err := look(ctx, s, func(v *state.View) error {
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
		Demand: func(ctx context.Context) (plugin.Demand, error) { return demand(ctx, s) },
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

// providerWanted is what the provider's process is to be.
func providerWanted(e home.Environment, env state.Environment) plugin.Wanted {
	w := plugin.Wanted{Environment: provider.Environment{
		UUID: env.UUID, Name: env.Name, Dir: e.Dir, Shared: strings.HasPrefix(e.State, "sqlite:"), Config: env.ProviderConfig(),
	}}
	if !isBuiltin(env.Provider) {
		w.SHA256 = env.Config[state.ProviderSHA256]
	}
	return w
}

// demand says if there are machines, or were.
func demand(ctx context.Context, s *state.State) (d plugin.Demand, err error) {
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

// findProvider is the executable of the provider of that environment, if it is the
// one that was accepted.
func findProvider(name, sum string, e home.Environment) (string, error) {
	if isBuiltin(name) {
		return plugin.Find(name, []string{e.ToolsDir()})
	}
	path, err := plugin.Find(name, providerFolders(e))
	if err != nil {
		return "", err
	}
	err = plugin.Check(path, sum)
	if other, ok := errors.AsType[*plugin.MismatchError](err); ok {
		err = fmt.Errorf("%w; if it is meant to be: juju set-environment %s=%s", err, state.ProviderSHA256, other.Got)
	}
	return path, err
}

// providerFolders are where executables of providers are looked for, in order.
func providerFolders(e home.Environment) []string {
	return slices.Concat(
		filepath.SplitList(os.Getenv("BIJOU_PLUGIN_PATH")),
		[]string{filepath.Join(e.Dir, "providers"), "/usr/local/lib/bijou/providers", "/usr/lib/bijou/providers"},
		filepath.SplitList(os.Getenv("PATH")),
	)
}
