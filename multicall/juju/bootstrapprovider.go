package juju

import (
	"fmt"
	"maps"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
)

// checkProvider runs before anything is made, and refuses a provider whose machines could
// not reach the state.
func (b *bootstrap) checkProvider() error {
	var err error
	b.provider, err = b.o.parts.Providers.Inspect(b.o.ctx, b.env, b.cmd.Config)
	if err != nil {
		return fmt.Errorf("cannot bootstrap environment %q: %w", b.env.Name, err)
	}
	if _, err := b.environmentRecord().ChooseSeries(b.cmd.DefaultSeries, nil, false); err != nil {
		return console.Hint(
			console.Usage(fmt.Errorf("cannot bootstrap environment %q with the default series %q: machines of the provider %q have %q here", b.env.Name, b.cmd.DefaultSeries, b.env.Provider, b.provider.Series)),
			"leave --default-series out, or allow others with --config "+state.AllowOtherSeries+"=true")
	}
	if b.provider.Remote && strings.HasPrefix(b.env.State, "sqlite:") {
		return console.Hint(
			fmt.Errorf("cannot bootstrap environment %q: machines of the provider %q are other hosts, which cannot reach a state in a file of this one", b.env.Name, b.env.Provider),
			"--state etcd://HOST:PORT/PREFIX keeps it where they can; juju migrate-state takes an environment there that began in a file")
	}
	return nil
}

// environmentConfig adds to the operator's values the sum of the provider's executable, by
// which a replaced one is noticed.
func (b *bootstrap) environmentConfig() map[string]string {
	config := maps.Clone(b.cmd.Config)
	if b.provider.SHA256 == "" {
		return config
	}
	if config == nil {
		config = map[string]string{}
	}
	config[state.ProviderSHA256] = b.provider.SHA256
	return config
}
