package juju

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/charm"
)

type deployCmd struct {
	Charm       string   `arg:"" help:"A charm or bundle of the store: NAME or ch:NAME; a charm's directory (./DIR, DIR/) or zip archive; with a repository NAME or SERIES/NAME; or a bundle: a file *.yaml, or a directory with bundle.yaml."`
	Service     string   `arg:"" name:"application" optional:"" help:"The application's name; default: the charm's."`
	Repository  string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"Take charms from this directory (SERIES/NAME or NAME)."`
	Config      []string `sep:"none" placeholder:"FILE|K=V" help:"Set options from a YAML file ({APPLICATION: {OPTION: VALUE}}, or the output of juju get; - is stdin), or one option, whose VALUE can be @FILE. Can be repeated; later ones override."`
	Series      string   `aliases:"base" placeholder:"SERIES" help:"Use this series, or base (ubuntu@24.04), for its machines; default: that of the repository's directory or of SERIES/NAME, else the model's default if the charm supports it, else the charm's first that machines can have."`
	ForceSeries bool     `aliases:"force-base" help:"Deploy even if the charm does not support the machines' series or architecture. Also applies to later upgrades and units."`
	Force       bool     `help:"Deploy a charm for other series, as --force-series does, or one that needs what bijou does not have (block devices, a newer Juju). Also applies to later upgrades."`
	Trust       bool     `help:"Give its units the cloud's credential (juju set-credential); juju trust --remove ends that."`
	JujuVersion string   `placeholder:"VERSION" help:"Report this version of Juju to its hooks; default: the version that bijou behaves like."`
	HookDialect string   `placeholder:"DIALECT" help:"Use this dialect for its hooks, classic or modern; default: detected from the charm."`
	Resource    []string `sep:"none" placeholder:"NAME=FILE" help:"Attach a file as a resource of the charm, or, for a charm of the store, the number of a revision; can be repeated."`
	Storage     []string `sep:"none" placeholder:"NAME=POOL,SIZE,COUNT" help:"Give each unit storage of the charm: COUNT of it, of pool rootfs, tmpfs or host:/FOLDER, with a size like 10G; can be repeated."`
	Constraints []string `sep:"none" placeholder:"\"K=V ...\"" help:"Set constraints for its units' machines, which override the model's."`
	Channel     string   `placeholder:"CHANNEL" help:"Take and follow this channel of a charm of the store, as 14/stable; default: stable of the charm's default track."`
	Revision    int      `placeholder:"N" help:"Take this revision of a charm of the store."`
	placementFlags
	waitFlags

	Overlay      []string `sep:"none" type:"existingfile" placeholder:"FILE" help:"Lay this file over a bundle; can be repeated."`
	DryRun       bool     `help:"Only print the steps of a bundle."`
	AllowOutside bool     `help:"Also use files outside of a bundle's directory for options and resources; --dry-run names them."`
	Format       string   `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print the steps of a bundle as tabular, yaml or json; default tabular."`
}

// Run reads and checks the charm, stores its archive, and adds the service with its units.
func (c deployCmd) Run(o *operator) error {
	name, isStore, err := charmSource{name: c.Charm, repository: c.Repository}.storeName("deploy")
	if err != nil {
		return err
	}
	if path, isBundle := findBundle(c.Charm); isBundle && !isStore {
		if err := c.refuseStoreFlags(); err != nil {
			return err
		}
		return c.deployBundle(o, path)
	}
	if err := errors.Join(c.check(), c.checkJujuVersion()); err != nil {
		return err
	}
	c.noteTogether(o)
	if isStore {
		return c.deployFromStore(o, name)
	}
	if err := errors.Join(c.refuseBundleFlags(), c.refuseStoreFlags()); err != nil {
		return err
	}
	if err := c.takeSeries(); err != nil {
		return err
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return fmt.Errorf("cannot deploy %q: %w", c.Charm, err)
	}
	defer os.RemoveAll(scratch)

	d, err := c.newDeployment(o, scratch)
	if err != nil {
		return err
	}

	return o.openChosen(func(s *state.State) error {
		d.state = s
		o.noteAffected(untilIdle, d.service.Name)
		if err := d.run(); err != nil {
			return o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
		}
		return d.addUnits()
	})
}

// takeSeries replaces a base in --series by its series, and checks it.
func (c *deployCmd) takeSeries() error {
	c.Series = charm.SeriesOfBase(c.Series)
	if c.Series == "" {
		return nil
	}
	if err := charm.CheckSeries(c.Series); err != nil {
		return console.Usage(err)
	}
	return nil
}

// newDeployment reads the local charm that the command line names, and prepares the service and its
// resources.
func (c deployCmd) newDeployment(o *operator, scratch string) (*deployment, error) {
	found, origin, err := charmSource{
		name:       c.Charm,
		repository: c.Repository,
		series:     c.Series,
		tools:      o.parts.HookTools,
	}.find(scratch)
	if err != nil {
		return nil, err
	}
	service, err := c.newService(found.Meta.Name)
	if err != nil {
		return nil, err
	}
	service.Origin = origin

	files, err := parseResourceFiles(found.Meta, c.Resource)
	if err != nil {
		return nil, fmt.Errorf("cannot deploy %q: %w", c.Charm, err)
	}
	return c.prepare(o, found, service, files)
}

// newService returns the service as the flags have it. It is called as its charm, unless it was given a name.
func (c deployCmd) newService(charmName string) (state.Service, error) {
	lifted := liftedBy(c.Force, c.ForceSeries)
	service := state.Service{
		Name:        cmp.Or(c.Service, charmName),
		ForceSeries: lifted.Series,
		Force:       lifted.Missing,
		JujuVersion: c.JujuVersion,
		Trusted:     c.Trust,
	}

	err := charm.CheckService(service.Name)
	if err != nil {
		return service, fmt.Errorf("cannot deploy %q: %w", c.Charm, err)
	}
	if service.HookDialect, err = charm.ParseDialect(c.HookDialect); err != nil {
		return service, console.Usage(err)
	}
	if service.Constraints, err = parseConstraints(c.Constraints...); err != nil {
		return service, err
	}

	service.Storage, err = parseDirectives(c.Storage)
	return service, err
}

// prepare returns the deployment of a charm as the flags describe it. It returns an error if charm and
// flags contradict each other.
func (c deployCmd) prepare(
	o *operator,
	found charm.Found,
	service state.Service,
	files map[string]string,
) (*deployment, error) {
	config, err := o.newOptionReader(found.Config, service.Name).readWords(c.Config)
	if err != nil {
		return nil, err
	}
	if found.Meta.Subordinate && (c.NumUnits != 1 || c.To != "" || len(c.AttachStorage) > 0) {
		return nil, fmt.Errorf(
			"cannot deploy %q with -n, --to or --attach-storage: it is a subordinate, whose units come with those of a related application",
			c.Charm,
		)
	}

	d := &deployment{
		o:          o,
		found:      found,
		service:    service,
		config:     config,
		series:     c.Series,
		files:      files,
		placements: c.placements(),
	}

	if !found.Meta.Subordinate {
		d.units = c.NumUnits
	}
	return d, nil
}

// checkJujuVersion refuses a version that charm libraries cannot parse.
func (c deployCmd) checkJujuVersion() error {
	if c.JujuVersion == "" || regexp.MustCompile(`^\d{1,9}\.\d{1,9}\.\d{1,9}$`).MatchString(c.JujuVersion) {
		return nil
	}
	return console.Usage(fmt.Errorf("invalid --juju-version %q: want one like 2.9.50", c.JujuVersion))
}

// deployment is a service that is to be added.
type deployment struct {
	o          *operator
	state      state.Writer
	found      charm.Found
	service    state.Service
	config     map[string]any    // as SetConfig takes it
	series     string            // of its machines; empty: as charmURL says
	files      map[string]string // of resources, by name
	store      *storeRelease     // what it is of a store; nil: a folder or an archive
	channel    string            // of the store, that is followed
	units      int
	placements []state.Placement // of all units, or of each

	storage     map[string]charm.Directive // that each unit gets, once it is deployed
	dialectNote string                     // which dialect, and why, once it is deployed
}

// run adds the service with its first unit, and says so.
func (d *deployment) run() error {
	url, err := d.charmURL()
	if err != nil {
		return err
	}

	err = d.addService(url)
	for errors.Is(err, state.ErrRevisionTaken) {
		url.Revision++ // another charm, or other content of this one, has that revision
		err = d.addService(url)
	}

	if err != nil {
		return err
	}

	d.o.note("deployed %s as application %q", d.describeCharm(), d.service.Name)
	d.o.note("%s", d.dialectNote)
	d.o.noteUnsupported(d.found.Charm, cmp.Or(d.service.JujuVersion, charm.JujuVersion))
	d.o.noteCalls(d.found.Path)
	d.o.noteMissingResources(d.found.Meta, d.service.Name, d.files)
	d.noteSizes()
	return nil
}

// describeCharm returns the charm in the words of the command's messages: its URL, or its name in the store.
func (d *deployment) describeCharm() string {
	origin := d.service.Origin
	switch {
	case d.store == nil:
		return d.service.Charm
	case d.store.Channel == "":
		return fmt.Sprintf("%s from the store, revision %d,", origin.Name, origin.Revision)
	}
	return fmt.Sprintf("%s from the store, revision %d in channel %s,", origin.Name, origin.Revision, d.store.Channel)
}

// charmURL returns the URL under which the charm is stored. Its series is the operator's, else the
// repository's, else the one that ChooseSeries chooses.
func (d *deployment) charmURL() (charm.URL, error) {
	env, err := state.Read(d.o.ctx, d.state, func(v *state.View) (state.Environment, error) {
		env, err := v.Environment()
		if _, missing := v.Service(d.service.Name); err == nil && missing == nil {
			err = fmt.Errorf("there is already an application %q; give a different name after the charm's",
				d.service.Name)
		}
		return env, err
	})

	url := charm.URL{
		Series:   cmp.Or(d.series, d.found.Series),
		Name:     d.found.Meta.Name,
		Revision: d.found.Revision,
	}
	if err != nil {
		return url, err
	}
	if url.Series != "" {
		if err := charm.CheckSeries(url.Series); err != nil {
			return url, err
		}
	}

	url.Series, err = env.ChooseSeries(url.Series, d.found.Meta.Series, d.service.ForceSeries)
	if err == nil && d.needsMachines() {
		err = d.o.checkSeries(env, url.Series, d.service.ForceSeries)
	}
	return url, err
}

// needsMachines reports whether a machine may have to be made for a unit.
func (d *deployment) needsMachines() bool {
	isThere := func(p state.Placement) bool { return p.Machine != "" && p.Machine != state.PlaceNew }
	return d.units > 0 && (len(d.placements) == 0 || !slices.ContainsFunc(d.placements, isThere))
}

// checkSeries refuses a series that machines cannot have as their host is. With force that is left to the
// machine's start, before which the host can be mended.
func (o *operator) checkSeries(env state.Environment, series string, force bool) error {
	if force {
		return nil
	}
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	if err := o.parts.Providers.CheckSeries(e, env, series); err != nil {
		return fmt.Errorf("machines of the series %q cannot be made: %w", series, err)
	}
	return nil
}

// liftedBy returns the checks that --force and --force-series lift, in deploy, of bundles and in refresh.
func liftedBy(force, forceSeries bool) bundle.Force {
	return bundle.Force{Series: force || forceSeries, Missing: force}
}

// withForceHint adds to an error that --force overrides a hint with that option.
func (o *operator) withForceHint(err error) error {
	if slices.Contains(o.args, "--force") {
		return err // or else it would be told to do it again
	}

	isDryRun := func(word string) bool { return word == "--dry-run" }
	called := quoteShellWords(slices.DeleteFunc(slices.Clone(o.args), isDryRun))
	if _, missing := errors.AsType[*state.MissingError](err); missing {
		return console.Hint(err,
			fmt.Sprintf("juju %s --force runs it anyway, but its tools for that fail", called))
	}
	if _, other := errors.AsType[*state.SeriesError](err); other {
		return console.Hint(err,
			fmt.Sprintf("juju %s --force runs it there anyway%s", called, o.describeHookUser()),
			fmt.Sprintf("juju model-config %s=true allows it for this whole model, juju model-defaults %[1]s=true for new ones",
				state.AllowOtherSeries))
	}

	return err
}

// describeHookUser returns a clause that says as which user a charm's hooks run, if they run on this host,
// and "" otherwise.
func (o *operator) describeHookUser() string {
	silent := *o
	silent.streams.Err = io.Discard
	env, err := readChosen(&silent, (*state.View).Environment)
	switch {
	case err != nil || env.Provider != state.ProviderLocal:
		return ""
	case os.Getuid() == 0:
		return "; its hooks run on this host, as root"
	}
	return "; its hooks run on this host, as this user"
}

// addService adds the charm, the service and its first units in one transaction, so that a refused
// placement leaves no service behind. The first units are one, or all that have places of their own.
func (d *deployment) addService(url charm.URL) error {
	record, err := d.storeCharm(url)
	if err != nil {
		return err
	}
	resources, err := d.o.storeResources(d.state, d.files)
	if err != nil {
		return err
	}
	d.store.mark(resources)
	d.service.Charm = url.String()
	d.service.Series = url.Series
	if d.store != nil {
		d.service.Origin = d.store.origin(d.channel, url.Series)
	}

	return d.state.Update(d.o.ctx, func(tx *state.Tx) error {
		if err := tx.AddCharm(record); err != nil {
			return err
		}
		s, err := tx.AddService(d.service, d.config)
		if err != nil {
			return err
		}

		if len(d.config) > 0 {
			if err := noteOptions(tx, s.Name, slices.Sorted(maps.Keys(d.config))); err != nil {
				return err
			}
		}

		d.storage = s.Storage
		d.dialectNote = fmt.Sprintf("its hooks speak %s: %s", s.Dialect, s.DialectMark)
		if err := putResources(tx, d.service.Name, resources); err != nil || d.units == 0 {
			return err
		}

		for _, p := range d.placements {
			_, aerr := tx.AddUnit(d.service.Name, p)
			err = errors.Join(err, aerr)
		}

		return err
	})
}

func (d *deployment) storeCharm(url charm.URL) (state.Charm, error) {
	if d.store != nil {
		return d.store.put(d.o, d.state, d.found.Charm, url)
	}
	return d.o.storeCharm(d.state, d.found, url)
}

// addUnits adds the others. A subordinate's come with their principals.
func (d *deployment) addUnits() error {
	_, err := d.state.AddUnits(d.o.ctx, d.service.Name, max(0, d.units-len(d.placements)), d.placements...)
	return err
}

func (o *operator) noteUnsupported(c *charm.Charm, jujuVersion string) {
	if required, optional := charm.Unsupported(c.Meta, jujuVersion); len(required)+len(optional) > 0 {
		o.note("warning: the charm asks for %s: this version of bijou has none",
			strings.Join(append(required, optional...), ", "))
	}
}
