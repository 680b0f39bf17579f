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
	Charm       string   `arg:"" help:"A charm or bundle from the store: NAME or ch:NAME; a charm's directory (./DIR, DIR/) or zip archive; with a repository, NAME or SERIES/NAME; or a bundle: a .yaml or .yml file, or a directory with bundle.yaml."`
	Service     string   `arg:"" name:"application" optional:"" help:"The application's name; default: the charm's."`
	Repository  string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"Take charms from this directory (SERIES/NAME or NAME)."`
	Config      []string `sep:"none" placeholder:"FILE|K=V" help:"Set options from a YAML file ({APPLICATION: {OPTION: VALUE}}, or the output of juju config; - is stdin), or one option, whose VALUE can be @FILE. Can be repeated; later ones override."`
	Series      string   `aliases:"base" placeholder:"SERIES" help:"Use this series, or base (ubuntu@24.04), for its machines. Default: the series of the repository's directory or of SERIES/NAME; otherwise the model's default if the charm supports it; otherwise the charm's first series that machines can have."`
	ForceSeries bool     `aliases:"force-base" help:"Deploy even if the charm does not support the machines' series or architecture. Also applies to later upgrades and units."`
	Force       bool     `help:"Deploy a charm for other series, as --force-series does, or a charm that needs features that bijou does not have (block devices, a newer Juju). Also applies to later upgrades."`
	Trust       bool     `help:"Give its units the cloud's credential (juju set-credential); juju trust --remove revokes that."`
	JujuVersion string   `placeholder:"VERSION" help:"Report this version of Juju to its hooks; default: the version whose features bijou has."`
	HookDialect string   `placeholder:"DIALECT" help:"Use this dialect for its hooks, classic or modern; default: detected from the charm."`
	Resource    []string `sep:"none" placeholder:"NAME=FILE" help:"Attach FILE as the charm's resource NAME. For a charm from the store, FILE can be the number of a revision. Can be repeated."`
	Storage     []string `sep:"none" placeholder:"NAME=POOL,SIZE,COUNT" help:"Give each unit COUNT instances of storage NAME, each of SIZE (such as 10G), from POOL: rootfs, tmpfs or host:/DIRECTORY. Can be repeated."`
	Constraints []string `sep:"none" placeholder:"\"K=V ...\"" help:"Set constraints for its units' machines, which override the model's."`
	Channel     string   `placeholder:"CHANNEL" help:"Take the charm from this channel of the store, such as 14/stable, and follow the channel; default: stable of the charm's default track."`
	Revision    int      `placeholder:"N" help:"Take revision N of a charm from the store."`
	placementFlags
	waitFlags

	Overlay      []string `sep:"none" type:"existingfile" placeholder:"FILE" help:"Apply the overlay FILE to a bundle. Can be repeated."`
	DryRun       bool     `help:"Only print the steps of a bundle."`
	AllowOutside bool     `help:"Let a bundle read options and resources from files outside its directory. --dry-run lists these files."`
	Format       string   `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print the steps of a bundle as tabular, yaml or json; default tabular."`
}

// Run deploys a charm from the store or from this host as a service with units. If the argument names a
// bundle, Run deploys the bundle instead.
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

	// c.check checks the flags for the number and the machines of units.
	if err := errors.Join(c.check(), c.checkJujuVersion()); err != nil {
		return err
	}
	c.noteTogether(o) // prints a note if all units go to one machine
	if isStore {
		return c.deployFromStore(o, name)
	}

	// From here on, the charm is a charm of this host.
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

	return o.openChosen(func(s *state.State) error { return c.execute(s, d) })
}

// execute carries out a prepared deployment: it adds the service with its first units, and then the other units.
// For --wait, it records the service.
func (c deployCmd) execute(s *state.State, d *deployment) error {
	d.state = s
	d.o.noteAffected(untilIdle, d.service.Name) // --wait waits until its units are idle
	if err := d.run(); err != nil {
		return d.o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
	}
	return d.addUnits()
}

// takeSeries replaces a base in --series with its series, and checks the series.
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

// newDeployment finds the local charm that the command line names, and prepares the service and its
// resources. scratch is a directory for the unpacked files of an archive.
func (c deployCmd) newDeployment(o *operator, scratch string) (*deployment, error) {
	release, err := charmSource{
		name:       c.Charm,
		repository: c.Repository,
		series:     c.Series,
		tools:      o.parts.HookTools,
	}.find(o.ctx, scratch)
	if err != nil {
		return nil, err
	}
	service, err := c.newService(release.Name)
	if err != nil {
		return nil, err
	}

	files, err := parseResourceFiles(release.found.Meta, c.Resource)
	if err != nil {
		return nil, fmt.Errorf("cannot deploy %q: %w", c.Charm, err)
	}
	return c.prepare(o, release, service, files)
}

// newService returns the service that the flags describe, without its charm. Without a name on the command line,
// the service gets the name of its charm. newService returns an error if the name or a flag is invalid.
func (c deployCmd) newService(charmName string) (state.Service, error) {
	lifted := liftedBy(c.Force, c.ForceSeries) // the checks that are turned off
	service := state.Service{
		Name:        cmp.Or(c.Service, charmName),
		ForceSeries: lifted.Series,
		Force:       lifted.Missing, // the check for missing features
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

// prepare returns the deployment of the release as the given service, with the options and units that the flags
// describe. files are the files of the charm's resources, by name. prepare returns an error if an option is
// invalid, or if the charm is a subordinate and the flags choose a number of units, machines or storage.
func (c deployCmd) prepare(
	o *operator,
	release *charmRelease,
	service state.Service,
	files map[string]string,
) (*deployment, error) {
	found := release.found
	config, err := o.newOptionReader(found.Config, service.Name).readWords(c.Config)
	if err != nil {
		return nil, err
	}
	// One unit is the default of -n. A subordinate gets no unit of its own.
	if found.Meta.Subordinate && (c.NumUnits != 1 || c.To != "" || len(c.AttachStorage) > 0) {
		return nil, fmt.Errorf(
			"cannot deploy %q with -n, --to or --attach-storage: the charm is a subordinate, whose units come with units of a related application",
			c.Charm,
		)
	}

	d := &deployment{
		o:          o,
		release:    release,
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

// checkJujuVersion returns an error for a version that charm libraries cannot parse.
func (c deployCmd) checkJujuVersion() error {
	if c.JujuVersion == "" || regexp.MustCompile(`^\d{1,9}\.\d{1,9}\.\d{1,9}$`).MatchString(c.JujuVersion) {
		return nil
	}
	return console.Usage(fmt.Errorf("invalid --juju-version %q: want one like 2.9.50", c.JujuVersion))
}

// deployment is a service to add, with its charm and units.
type deployment struct {
	o          *operator
	state      state.Writer
	release    *charmRelease
	service    state.Service
	config     map[string]any    // options, in the form of SetConfig
	series     string            // the series of the machines; if it is empty, charmURL chooses it
	files      map[string]string // files of resources, by name
	channel    string            // the store's channel that the service follows
	units      int
	placements []state.Placement // one for all units, or one for each

	// addService sets these fields.
	storage     map[string]charm.Directive // the storage that each unit gets
	dialectNote string                     // a note with the dialect of the hooks, and the reason for the dialect
}

// run adds the service with its first units, and prints notes and warnings about the service and its charm. If the
// charm's revision is taken by a charm with different content, it stores the charm as the next free revision.
func (d *deployment) run() error {
	url, err := d.charmURL()
	if err != nil {
		return err
	}

	err = d.addService(url)
	for errors.Is(err, state.ErrRevisionTaken) {
		// A stored charm with the same URL has different content.
		url.Revision++
		err = d.addService(url)
	}
	if err != nil {
		return err
	}

	d.o.note("deployed %s as application %q", d.describeCharm(), d.service.Name)
	d.o.note("%s", d.dialectNote)
	d.o.noteUnsupported(d.release.found.Charm, cmp.Or(d.service.JujuVersion, charm.JujuVersion))
	d.o.noteCalls(d.release.found.Path) // programs and operations that its machines lack
	d.o.notePackages(d.release)         // Python packages that the charm lacks
	d.o.noteMissingResources(d.release.found.Meta, d.service.Name, d.files)
	d.noteSizes() // sizes of storage that are not enforced
	return nil
}

// describeCharm describes the charm for the command's messages, by its URL or by its name in the store. A
// description with a revision ends with a comma, for the middle of a sentence.
func (d *deployment) describeCharm() string {
	if d.release.isLocal() {
		return d.service.Charm
	}

	origin := d.service.Origin
	if d.release.Channel == "" {
		return fmt.Sprintf("%s from the store, revision %d,", origin.Name, origin.Revision)
	}
	return fmt.Sprintf("%s from the store, revision %d in channel %s,", origin.Name, origin.Revision, d.release.Channel)
}

// charmURL returns the URL under which the charm is stored. [state.Environment.ChooseSeries] chooses the series. It
// gets the series that the operator gave or, without one, the series of the charm in the repository. charmURL
// returns an error if the service exists already, if the given series is invalid, or if ChooseSeries finds none.
// Unless d.service.ForceSeries is set, it also returns an error if the service may need new machines, and this host
// lacks a prerequisite of machines with the series.
func (d *deployment) charmURL() (charm.URL, error) {
	env, err := state.Read(d.o.ctx, d.state, func(v *state.View) (state.Environment, error) {
		// An error of Service can be ignored. Either the service does not exist, or AddService will return the same
		// error.
		if _, err := v.Service(d.service.Name); err == nil {
			return state.Environment{}, fmt.Errorf(
				"there is already an application %q; to give this one a different name, add the name after the charm", d.service.Name)
		}
		return v.Environment()
	})
	if err != nil {
		return charm.URL{}, err
	}

	found := d.release.found
	series := cmp.Or(d.series, found.Series)
	if series != "" {
		if err := charm.CheckSeries(series); err != nil {
			return charm.URL{}, err
		}
	}

	// ChooseSeries checks a given series, and otherwise chooses one.
	series, err = env.ChooseSeries(series, found.Meta.Series, d.service.ForceSeries)
	if err != nil {
		return charm.URL{}, err
	}
	if d.needsMachines() {
		if err := d.o.checkSeries(env, series, d.service.ForceSeries); err != nil {
			return charm.URL{}, err
		}
	}

	return charm.URL{Series: series, Name: found.Meta.Name, Revision: found.Revision}, nil
}

// needsMachines reports whether the units may need new machines. It returns false if a unit is placed on an
// existing machine.
func (d *deployment) needsMachines() bool {
	isOnExisting := func(p state.Placement) bool { return p.Machine != "" && p.Machine != state.PlaceNew }
	return d.units > 0 && !slices.ContainsFunc(d.placements, isOnExisting)
}

// checkSeries returns an error if this host cannot create machines of the series, or if no environment
// can be chosen. It does not check the series for a provider without such a check, or on a host other than that of
// machine 0. With force it checks nothing, since the operator can still change the host before the machine starts.
func (o *operator) checkSeries(env state.Environment, series string, force bool) error {
	if force {
		return nil
	}
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	if err := o.parts.Providers.CheckSeries(e, env, series); err != nil {
		return fmt.Errorf("machines of the series %q cannot be created: %w", series, err)
	}
	return nil
}

// liftedBy returns the checks that --force and --force-series turn off. The flags mean the same in juju
// deploy, for bundles and in juju refresh.
func liftedBy(force, forceSeries bool) bundle.Force {
	return bundle.Force{Series: force || forceSeries, Missing: force}
}

// withForceHint returns err. If --force would avoid err, it adds a hint with a command that uses --force. If a
// setting of the model would also avoid err, another hint shows that setting.
func (o *operator) withForceHint(err error) error {
	if slices.Contains(o.args, "--force") {
		// The operator has already given --force.
		return err
	}

	// The hint repeats the command line without --dry-run, so that the hint's command really changes the model.
	isDryRun := func(word string) bool { return word == "--dry-run" }
	command := quoteShellWords(slices.DeleteFunc(slices.Clone(o.args), isDryRun))
	if _, isMissing := errors.AsType[*state.MissingError](err); isMissing {
		return console.Hint(err,
			fmt.Sprintf("to deploy it anyway: juju %s --force; but hook tools for missing features will fail", command))
	}
	if _, isSeries := errors.AsType[*state.SeriesError](err); isSeries {
		return console.Hint(err,
			fmt.Sprintf("juju %s --force runs it there anyway%s", command, o.describeHookUser()),
			fmt.Sprintf("juju model-config %s=true allows it for this whole model, juju model-defaults %[1]s=true for new ones",
				state.AllowOtherSeries))
	}

	return err
}

// describeHookUser returns a clause that says as which user the hooks of charms run on this host. If hooks
// run on other hosts or in containers, or the environment cannot be read, it returns "".
func (o *operator) describeHookUser() string {
	// Notes that readChosen prints would not belong to a hint.
	silent := *o
	silent.streams.Err = io.Discard
	env, err := readChosen(&silent, (*state.View).Environment)
	if err != nil || env.Provider != state.ProviderLocal {
		return ""
	}

	if os.Getuid() == 0 {
		return "; its hooks run on this host, as root"
	}
	return "; its hooks run on this host, as this user"
}

// addService stores the charm's files and its resources. Then, in one transaction, it adds the charm, the service
// with its resources, and one unit for each placement, so that no service is left behind if a placement is wrong.
// A service without units of its own gets none. addService returns [state.ErrRevisionTaken] if the URL belongs to
// a charm with different content.
func (d *deployment) addService(url charm.URL) error {
	record, err := d.release.put(d.o, d.state, url)
	if err != nil {
		return err
	}
	stored, err := d.o.storeResources(d.state, d.files)
	if err != nil {
		return err
	}
	d.release.markDownloaded(stored) // sets the store's revisions of downloaded resources

	d.service.Charm = url.String()
	d.service.Series = url.Series
	d.service.Origin = d.release.origin(d.channel, url.Series)

	return d.state.Update(d.o.ctx, func(tx *state.Tx) error {
		if err := tx.AddCharm(record); err != nil {
			return err
		}
		s, err := tx.AddService(d.service, d.config)
		if err != nil {
			return err
		}

		// AddService has set these options, but does not record who set them.
		if len(d.config) > 0 {
			if err := recordOptions(tx, s.Name, slices.Sorted(maps.Keys(d.config))); err != nil {
				return err
			}
		}

		d.storage = s.Storage
		d.dialectNote = fmt.Sprintf("its hooks use the %s dialect, because %s", s.Dialect, s.DialectMark)
		if err := putResources(tx, d.service.Name, stored); err != nil {
			return err
		}
		return d.addFirstUnits(tx)
	})
}

// addFirstUnits adds one unit for each placement, or none if the service gets no units of its own. Errors of
// several placements are returned together.
func (d *deployment) addFirstUnits(tx *state.Tx) error {
	if d.units == 0 {
		return nil
	}

	var errs []error
	for _, p := range d.placements {
		_, err := tx.AddUnit(d.service.Name, p)
		errs = append(errs, err) // Join drops nil
	}
	return errors.Join(errs...)
}

// addUnits adds the units that addService did not add. It adds no units of a subordinate, since they come
// with their principals. If there are units left, d.placements has one placement for all of them.
func (d *deployment) addUnits() error {
	// With no units of its own, a service still has one placement.
	remaining := max(0, d.units-len(d.placements))
	_, err := d.state.AddUnits(d.o.ctx, d.service.Name, remaining, d.placements...)
	return err
}

// noteUnsupported warns if the charm uses features that this version of bijou does not have. jujuVersion is the
// version of Juju that the charm's hooks see.
func (o *operator) noteUnsupported(c *charm.Charm, jujuVersion string) {
	if required, optional := charm.Unsupported(c.Meta, jujuVersion); len(required)+len(optional) > 0 {
		o.note("warning: the charm asks for features that this version of bijou does not have: %s",
			strings.Join(append(required, optional...), ", "))
	}
}
