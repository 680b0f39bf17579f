package juju

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/constraints"
	"bijou/state/osutil"
	"bijou/state/secret"
	"bijou/state/storeurl"
)

// defaultEnvironment is the name of a new environment if no name is given.
const defaultEnvironment = "default"

// defaultSeries is the series of charms that name no series, unless the operator or the provider sets a
// different one.
const defaultSeries = "noble"

type bootstrapCmd struct {
	First         string   `arg:"" optional:"" name:"provider" help:"The same as --provider. For add-model, the name comes first."`
	Second        string   `arg:"" optional:"" name:"name" help:"The same as -e."`
	Provider      string   `default:"local" placeholder:"NAME" help:"Create machines with this provider. \"local\" uses directories and processes on this host. Any other provider NAME is the executable bijou-provider-NAME, on BIJOU_PLUGIN_PATH or PATH."`
	State         string   `env:"BIJOU_STATE" placeholder:"URL" help:"Keep the state at this URL: sqlite:PATH, etcd://HOST:PORT,.../PREFIX or etcd+unix:///SOCKET?prefix=/PREFIX; default: a file in the model's directory."`
	DefaultSeries string   `placeholder:"SERIES" help:"Use this series for charms that support it; default: the provider's series, or noble."`
	Config        []string `sep:"none" placeholder:"KEY=VALUE|FILE" help:"Set a setting of the model, as set-environment does, or the settings in a YAML file. Can be repeated."`
	Constraints   []string `sep:"none" placeholder:"\"K=V ...\"" help:"Set constraints for machines, as set-constraints does."`
	Controller    string   `short:"c" hidden:"" enum:",bijou" default:"" help:"Name the controller that juju show-model prints."`
	NoSwitch      bool     `help:"Do not use the new model in commands without -e."`

	config map[string]string // the settings of Config, under the environment's own keys
}

// Run creates the environment and starts its background process. If this fails, it removes what it has created, as
// far as it can. It returns an error, and removes nothing, if the environment exists already.
func (c bootstrapCmd) Run(o *operator) error {
	// `juju add-model NAME PROVIDER` has the arguments of bootstrap in the other order.
	if slices.Contains(o.args, "add-model") {
		c.First, c.Second = c.Second, c.First
	}
	c.Provider = cmp.Or(c.First, c.Provider)
	o.name = cmp.Or(home.EnvironmentName(c.Second), o.name)
	if err := c.resolveCloud(o); err != nil {
		return err
	}

	given, err := parseConstraints(c.Constraints...)
	if err != nil {
		return err
	}
	if c.config, err = readSettings(c.Config); err != nil {
		return err
	}
	c.config = nativeSettings(c.config) // under bijou's keys instead of Juju's
	o.noteJujuSettings(c.config)        // prints which are Juju's, and have no effect

	e, err := c.newEnvironment(o)
	if err != nil {
		return err
	}

	lock, err := o.home.Lock(e.Name)
	if err != nil {
		return fmt.Errorf("cannot bootstrap model %q: %w", e.Name, err)
	}
	defer lock.Release()

	if lock.Bootstrapped() {
		return console.Hint(fmt.Errorf("cannot bootstrap model %q: it already exists in %s",
			e.Name, e.Dir),
			"juju status -e "+e.Name+" shows it; juju destroy-model "+e.Name+
				" removes it; -e NAME makes a different one")
	}

	b := bootstrap{o: o, cmd: c, lock: lock, env: e, constraints: given}
	return b.create()
}

// create inspects the provider, and creates the environment. After an error, it removes everything that it has
// created, and the environment's directory.
func (b *bootstrap) create() error {
	// Until run begins, this command has created nothing except the directory, which Lock creates.
	var err error
	if b.defaults, err = b.o.home.Defaults(); err != nil {
		return errors.Join(fmt.Errorf("cannot bootstrap model %q: %w", b.env.Name, err), b.lock.Remove())
	}
	if err := b.inspectProvider(); err != nil {
		return errors.Join(err, b.lock.Remove())
	}

	if err := b.run(); err != nil {
		return fmt.Errorf("cannot bootstrap model %q: %w", b.env.Name, errors.Join(err, b.undo()))
	}
	return nil
}

// resolveCloud replaces Juju's name for this host with the provider local, and prints a note about it. It
// returns an error for the names of Juju's other clouds. It leaves any other provider unchanged.
func (c *bootstrapCmd) resolveCloud(o *operator) error {
	nspawnHint := "to use containers of this host: juju bootstrap nspawn"
	// Juju's users may append a region, as in aws/us-east-1.
	cloud, _, _ := strings.Cut(c.Provider, "/")
	switch cloud {
	case "localhost":
		c.Provider = state.ProviderLocal
		o.note("note: localhost means the provider local, whose units run on this host; %s", nspawnHint)
	case "lxd", "lxc", "docker":
		return console.Hint(console.Usage(fmt.Errorf("there is no provider %q", cloud)), nspawnHint)
	case "manual", "maas", "aws", "azure", "gce", "google", "openstack", "vsphere", "oracle", "equinix",
		"k8s", "kubernetes", "microk8s", "aks", "eks", "gke":
		return console.Hint(console.Usage(fmt.Errorf("there is no provider %q: bijou has no clouds and no clusters", cloud)),
			"to use existing hosts by ssh: juju bootstrap ssh --state etcd://HOST:PORT/PREFIX")
	}

	return nil
}

// newEnvironment returns the new environment's record, or an error if its name, series, directory or store's URL
// cannot be used. The name is o.name or, without that, the one in JUJU_ENV, and otherwise defaultEnvironment.
func (c bootstrapCmd) newEnvironment(o *operator) (home.Environment, error) {
	name := cmp.Or(o.name, os.Getenv("JUJU_ENV"), defaultEnvironment)
	if err := home.CheckName(name); err != nil {
		return home.Environment{}, err
	}

	if err := charm.CheckSeries(cmp.Or(c.DefaultSeries, defaultSeries)); err != nil {
		return home.Environment{}, console.Usage(err)
	}
	if strings.Contains(o.home.Dir, ":") {
		return home.Environment{}, console.Hint(
			fmt.Errorf(
				"cannot bootstrap in %q: PATH cannot contain a directory with a colon, so hooks could not find their tools",
				o.home.Dir,
			),
			"set BIJOU_HOME to a directory without a colon in its path")
	}

	e := home.Environment{
		Dir:    o.home.Path(name),
		Record: home.Record{Name: name, UUID: newUUID(), Provider: c.Provider},
	}

	url, err := c.stateURL(e)
	if err != nil {
		return home.Environment{}, err
	}
	e.State = url
	return e, nil
}

// stateURL returns the URL of the new environment's state, by default the URL of a file in the environment's
// directory. It makes the path of a SQLite URL absolute, since processes in other directories open it. It returns a
// usage error for a store in memory.
func (c bootstrapCmd) stateURL(e home.Environment) (string, error) {
	if c.State == "" {
		return "sqlite:" + e.StateFile(), nil
	}

	scheme, path, _ := strings.Cut(c.State, ":")
	if scheme == "mem" {
		return "", console.Usage(errors.New("cannot bootstrap: a store in memory would end with this command"))
	}
	if scheme != "sqlite" || path == "" {
		// Later steps report an invalid URL.
		return c.State, nil
	}

	abs, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("cannot find %q: %w", path, err)
	}

	return "sqlite:" + abs, nil
}

// newUUID returns a random UUID (RFC 9562, version 4).
func newUUID() string {
	var b [16]byte
	rand.Read(b[:])         // never fails (crypto/rand)
	b[6] = b[6]&0x0f | 0x40 // version 4
	b[8] = b[8]&0x3f | 0x80 // the variant of RFC 9562
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// bootstrap is the creation of an environment, by bootstrap or by restore.
type bootstrap struct {
	o            *operator
	cmd          bootstrapCmd
	lock         *home.FolderLock
	env          home.Environment
	provider     Provider
	constraints  constraints.Value // the environment's constraints for machines
	defaults     map[string]string // this host's initial settings of new environments
	createdStore bool              // whether this command creates the store, so that undo must remove it
	restore      *restore          // the backup to restore, or nil for an empty environment
}

// run creates the environment's parts: its tools, store, record and background process. Before that, it removes
// files that an interrupted bootstrap has left. Afterwards it makes the environment the one that commands without
// -e use, unless --no-switch is given.
func (b *bootstrap) run() error {
	if err := b.clearFolder(); err != nil {
		return err
	}

	var err error
	if b.env.Tools, err = home.InstallTools(b.env.Dir, b.o.parts.Version, b.o.parts.Applets); err != nil {
		return err
	}

	if err := b.chooseState(); err != nil {
		return err
	}
	if err := b.createState(); err != nil { // also restores a backup into the store
		return err
	}

	b.o.note("  tools %s, state %s", b.env.Tools, b.env.State)
	if b.restore == nil && len(b.defaults) > 0 {
		b.o.note("  defaults of this host: %s", describeDefaults(b.defaults))
	}
	b.o.warnOfStore(b.env.State) // about faults of etcd's servers
	if err := osutil.MkdirAll(b.env.MachineDir("0"), 0o755); err != nil {
		return fmt.Errorf("cannot create the machine's directory: %w", err)
	}
	if err := b.env.Save(); err != nil {
		return err
	}

	if b.o.parts.Fault != nil {
		b.o.parts.Fault("environment-saved") // tests can kill the program here
	}
	if err := b.o.startBackground(b.env); err != nil {
		return err
	}

	if !b.cmd.NoSwitch {
		if err := b.o.setCurrent(b.env.Name); err != nil {
			return err
		}
	}

	if b.provider.Isolated {
		b.o.note("model %q is ready", b.env.Name)
	} else {
		b.o.note("model %q is ready; units run on this host without isolation", b.env.Name)
	}

	b.o.noteReboot(b.env) // prints whether the environment starts again after a reboot
	return nil
}

// chooseState sets the URL of the environment's store. The environment keeps its own copy of the credentials
// that the URL names.
func (b *bootstrap) chooseState() (err error) {
	if b.restore != nil {
		b.env.State, err = b.restore.chooseStateURL(b.env)
		return err
	}

	b.env.State, err = b.env.KeepCredentials(b.env.State)
	return err
}

// clearFolder removes the files that an interrupted bootstrap has left in the environment's directory. With
// restore --replace it removes nothing, so that the units' directories stay.
func (b *bootstrap) clearFolder() error {
	if b.restore == nil {
		b.o.note("bootstrapping model %q in %s", b.env.Name, b.env.Dir)
		return b.lock.Clear()
	}

	b.o.note("restoring model %q in %s", b.env.Name, b.env.Dir)
	if b.restore.cmd.Replace {
		return nil
	}

	return b.lock.Clear()
}

// environmentRecord returns the record of the new environment.
func (b *bootstrap) environmentRecord() state.Environment {
	return state.Environment{
		Name:          b.env.Name,
		UUID:          b.env.UUID,
		Provider:      b.env.Provider,
		DefaultSeries: cmp.Or(b.cmd.DefaultSeries, b.provider.Series, defaultSeries),
		HostSeries:    b.provider.Series,
		Config:        b.environmentConfig(),
		Constraints:   b.constraints,
		Tools:         b.env.Tools,
	}
}

// createState creates the environment's store and, if the environment has none yet, a key for its secrets. If a
// backup is given, createState restores it into the store.
func (b *bootstrap) createState() error {
	if err := osutil.MkdirAll(filepath.Dir(b.env.StateFile()), 0o700); err != nil {
		return fmt.Errorf("cannot create the state's directory: %w", err)
	}
	exists, err := storeurl.Exists(b.o.ctx, b.env.State)
	if err != nil {
		return err
	}

	b.createdStore = !exists
	// The key must exist before the first machine is created, since every machine gets the key. After any other
	// error of Read there is a file, which must not be replaced.
	if _, err := b.env.SecretKeys().Read(); errors.Is(err, secret.ErrNoKey) {
		if err := b.env.SecretKeys().Write(secret.Keyring{secret.NewKey()}); err != nil {
			return err
		}
	}

	if b.restore != nil {
		return b.restoreState()
	}

	return state.Create(b.o.ctx, b.env.State, b.environmentRecord())
}

// restoreState restores the backup into the store. If an earlier call has completely restored the state,
// restoreState keeps that state, updates only its tools, and restores the files, unless --replace is given.
func (b *bootstrap) restoreState() error {
	uuid, err := b.restore.findWhole(b.env)
	if err != nil {
		return err
	}
	if uuid == "" || b.restore.cmd.Replace {
		return b.restore.restoreStore(b.env, b.provider.SHA256)
	}

	b.env.UUID = uuid
	b.restore.env.UUID = uuid
	if err := b.restore.unpackUnits(b.env); err != nil { // keeps directories that exist
		return err
	}
	// The earlier call may have unpacked the content already. The ids that unpackStorage returns are only
	// needed to restore the state, which the earlier call has done.
	const mayHaveFiles = true
	if _, err := b.restore.unpackStorage(b.env, mayHaveFiles); err != nil {
		return err
	}
	if err := b.restore.takeSecretKeys(b.env); err != nil { // writes the keys of the backup and of --key
		return err
	}

	err = b.o.openUnchecked(b.env, func(s *state.State) error {
		// A different version of bijou may have restored the state.
		return s.Update(b.o.ctx, func(tx *state.Tx) error { return tx.SetTools(b.env.Tools) })
	})
	if err != nil {
		return err
	}
	if err := b.restore.noteSealed(b.env); err != nil { // warns of secrets that no key opens
		return err
	}

	// The last step prints which storage is not restored.
	return b.restore.noteStorage(b.env)
}

// undo ends the agent of a failed bootstrap, and removes the store, if the bootstrap has created it, and the
// directory. It stops at the first error.
func (b *bootstrap) undo() error {
	// This context stays valid if the operator has interrupted the bootstrap.
	ctx, cancel := b.o.cleanupContext()
	defer cancel()

	// The agent must end first, since it uses the store and the directory.
	if err := b.o.parts.Processes.Halt(ctx, b.env.MachineDir("0"), haltTimeout); err != nil {
		return err
	}

	if b.createdStore {
		if err := storeurl.Remove(ctx, b.env.State); err != nil {
			return err
		}
	}

	return b.lock.Remove()
}

// inspectProvider checks the provider's settings and sets b.provider, before the environment is created. It
// returns an error if the provider's machines cannot have the default series, or could not reach the store.
func (b *bootstrap) inspectProvider() error {
	// The settings of a backup are not checked, since a newer version of bijou may have set them.
	if b.restore == nil {
		if err := b.o.parts.Providers.CheckSettings(b.env.Provider, b.cmd.config); err != nil {
			return fmt.Errorf("cannot bootstrap model %q: %w", b.env.Name, err)
		}
	}

	var err error
	b.provider, err = b.o.parts.Providers.Inspect(b.o.ctx, b.env, b.cmd.config)
	if err != nil {
		return fmt.Errorf("cannot bootstrap model %q: %w", b.env.Name, err)
	}

	// This only checks the series, for a charm that supports every series (nil).
	const force = false
	if _, err := b.environmentRecord().ChooseSeries(b.cmd.DefaultSeries, nil, force); err != nil {
		return console.Hint(
			console.Usage(fmt.Errorf(
				"cannot bootstrap model %q with the default series %q: machines of the provider %q on this host have %q",
				b.env.Name, b.cmd.DefaultSeries, b.env.Provider, b.provider.Series,
			)),
			"leave out --default-series, or allow others with --config "+state.AllowOtherSeries+"=true")
	}

	if b.provider.Remote && strings.HasPrefix(b.env.State, "sqlite:") {
		return console.Hint(
			fmt.Errorf(
				"cannot bootstrap model %q: machines of the provider %q are other hosts, which cannot reach a state in a file on this host",
				b.env.Name, b.env.Provider,
			),
			"give a state that all hosts can reach: --state etcd://HOST:PORT/PREFIX; to move an existing model there: juju migrate-state")
	}

	return nil
}

// environmentConfig returns the configuration of the new environment. The operator's values override this
// host's defaults. The checksum of the provider's executable later shows whether the executable was replaced.
func (b *bootstrap) environmentConfig() map[string]string {
	// Without this setting, the environment would count as older than the setting, and juju resolved would skip
	// failed hooks by default.
	config := map[string]string{state.ResolvedSkips: "false"}
	maps.Copy(config, b.defaults)
	maps.Copy(config, b.cmd.config)
	if b.provider.SHA256 != "" {
		config[state.ProviderSHA256] = b.provider.SHA256
	}
	return config
}
