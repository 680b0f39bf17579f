package providers

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"

	"bijou/agent"
	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/multicall/juju"
	"bijou/provision/plugin"
	"bijou/provision/provider"
	"bijou/state"
	"bijou/state/lazyregexp"
)

// providerName is strict, since the name is a part of a file's.
var providerName = lazyregexp.New(`^[a-z][a-z0-9-]*$`)

// Inspect asks the provider that an environment is to have what it can do: one
// inside the binary in this process.
func (All) Inspect(ctx context.Context, e home.Environment, config map[string]string) (juju.Provider, error) {
	env := state.Environment{Name: e.Name, UUID: e.UUID, Provider: e.Provider, Config: config}
	wanted := providerWanted(e, env)
	i := slices.IndexFunc(builtinProviders(), func(b builtinProvider) bool { return b.name == e.Provider })
	if i < 0 {
		return inspectPlugin(ctx, e, wanted)
	}
	b := builtinProviders()[i]
	p, err := b.create(wanted.Environment)
	if err != nil {
		return juju.Provider{}, err
	}
	c, err := p.Capabilities(ctx)
	found := jujuProvider(c)
	if err == nil && b.checkHost != nil {
		found.Series, err = b.checkHost(wanted.Environment.Config)
	}
	return found, err
}

func jujuProvider(c provider.Capabilities) juju.Provider {
	return juju.Provider{Isolated: c.Isolated, Remote: c.Remote}
}

func inspectPlugin(ctx context.Context, e home.Environment, wanted plugin.Wanted) (found juju.Provider, err error) {
	path, err := findPlugin(e)
	if err != nil {
		return found, err
	}
	sum, err := plugin.Sum(path)
	if err == nil {
		err = plugin.CheckSum(path, wanted.SHA256)
	}
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, agent.RemoveSockets(e.UUID)) }()
	client := plugin.NewClient(plugin.Options{
		Name: e.Provider, Sockets: providerFolder(e), Log: slog.New(slog.DiscardHandler), // the operator gets the error
		Find:   func(string) (string, error) { return path, nil },
		Wanted: func(context.Context) (plugin.Wanted, error) { return wanted, nil },
	})
	defer client.Close()
	c, err := client.Capabilities(ctx)
	found = jujuProvider(c)
	found.SHA256 = sum
	return found, err
}

func findPlugin(e home.Environment) (string, error) {
	folders := providerFolders(e)
	if providerName.MatchString(e.Provider) {
		path, err := plugin.Find(e.Provider, folders)
		if _, missing := errors.AsType[*plugin.NotFoundError](err); !missing {
			return path, err
		}
	}
	var found []string
	for _, b := range builtinProviders() {
		found = append(found, b.name)
	}
	for _, name := range plugin.Names(folders) {
		if !isBuiltin(name) {
			found = append(found, name)
		}
	}
	return "", console.Hint(
		console.Usage(fmt.Errorf("there is no provider %q; there are: %s", e.Provider, strings.Join(found, ", "))),
		fmt.Sprintf("others are executables %sNAME in the folders of BIJOU_PLUGIN_PATH (%q), in /usr/local/lib/bijou/providers, /usr/lib/bijou/providers or on PATH",
			plugin.Prefix, os.Getenv("BIJOU_PLUGIN_PATH")))
}
