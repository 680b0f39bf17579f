package juju

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/resources"
	"bijou/state/sweep"
)

type refreshCmd struct {
	Service     string   `arg:"" name:"application" help:"The application."`
	Repository  string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"Take charms from this directory (SERIES/NAME or NAME); default: where the charm came from."`
	Switch      string   `aliases:"path" placeholder:"CHARM" help:"Switch to a different charm: ch:NAME from the store, a directory (./DIR), an archive, or a name in the repository."`
	Channel     string   `placeholder:"CHANNEL" help:"Follow this channel of the store from now on, such as 14/stable."`
	Revision    *int     `placeholder:"N" help:"Use revision N, even an older one; juju show-application lists the revisions. Default: the newest."`
	Force       bool     `help:"Also upgrade units in an error state, as --force-units does. Accept a charm for other series, as --force-series does, or a charm that needs features that bijou does not have."`
	ForceUnits  bool     `help:"Also upgrade units in an error state, at once; they stay in that state."`
	ForceSeries bool     `aliases:"force-base" help:"Accept a charm that does not support the series or architecture of the application's machines."`
	Retry       bool     `help:"Also upgrade units in an error state, at once. The failed hook runs again, from the new charm."`
	Base        string   `placeholder:"BASE" help:"Check that its machines have this base (ubuntu@24.04), which cannot change."`
	Config      []string `sep:"none" placeholder:"FILE|K=V" help:"Set options with the upgrade, from a YAML file as for deploy, or one option. Can be repeated; later ones override."`
	Resource    []string `sep:"none" placeholder:"NAME=FILE" help:"Attach FILE as the charm's resource NAME. Can be repeated."`
	Trust       bool     `help:"Give its units the cloud's credential, as juju trust does."`
	Storage     []string `hidden:"" sep:"none" placeholder:"NAME=POOL,SIZE,COUNT"`
	DryRun      bool     `help:"Only print the changes."`
	waitFlags

	back *state.KeptCharm // the charm to which the service returns; nil if the flags name the charm
}

// Run finds the charm, stores it, and points the service at it. Then it removes revisions that no unit runs. With
// --dry-run it only prints the changes.
func (c refreshCmd) Run(o *operator) error {
	if c.Switch != "" && c.Revision != nil {
		return console.Usage(errors.New("--switch and --revision cannot be used together: the charm to switch to has its own revision"))
	}

	if len(c.Storage) > 0 {
		name, _, _ := strings.Cut(c.Storage[0], "=")
		return console.Hint(console.Usage(errors.New("cannot change storage with an upgrade: units keep the storage that they have")),
			fmt.Sprintf("to give a unit more storage: juju add-storage %s", quoteShellWords([]string{c.Service + "/0", name})))
	}

	return o.openChosen(func(s *state.State) error {
		o.noteAffected(untilIdle, c.Service)
		// settle upgrades, and begins again if somebody else upgrades the service at the same time.
		if c.DryRun {
			return o.withForceHint(s.Rehearse(o.ctx, func(r *state.Rehearsal) error { return c.settle(o, s, r) }))
		}
		if err := c.settle(o, s, s); err != nil {
			return o.withForceHint(err)
		}

		o.sweepCharms(s)
		return nil
	})
}

// sweepCharms removes revisions that no unit runs, such as a revision that an upgrade has replaced. If it fails,
// it prints a warning.
func (o *operator) sweepCharms(s *state.State) {
	if err := sweep.Charms(o.ctx, s, time.Now()); err != nil {
		o.note("warning: cannot remove revisions that no unit runs; they will be removed later: %v", err)
	}
}

// settle upgrades the service. It begins again whenever somebody else has upgraded the service in the meantime.
// base is the committed state. settle writes to s, which is base or a rehearsal of base.
func (c refreshCmd) settle(o *operator, base *state.State, s state.Writer) error {
	err := c.upgrade(o, base, s)
	for errors.Is(err, errServiceMoved) {
		err = c.upgrade(o, base, s)
	}
	return err
}

// upgrade prepares the upgrade and runs it. It writes to s, which is base or a rehearsal of base.
func (c refreshCmd) upgrade(o *operator, base *state.State, s state.Writer) error {
	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}
	defer os.RemoveAll(scratch)

	u := &upgrade{o: o, base: base, state: s, cmd: c}
	err = u.prepare(scratch)
	if rehearsed, ok := errors.AsType[rehearsedError](err); ok {
		// prepare has rehearsed the upgrade. u.run would return the same error, without the prefix below.
		return rehearsed.error
	}
	if err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}

	return u.run()
}

// prepare reads the service, finds the new charm, and does the work of readGiven for that charm. It returns an error
// if the command names a base whose series is not the service's. scratch is a directory for files that the command
// downloads or unpacks.
func (u *upgrade) prepare(scratch string) error {
	err := u.state.View(u.o.ctx, func(v *state.View) (err error) {
		u.service, err = v.Service(u.cmd.Service)
		if err != nil {
			return err
		}

		u.current, err = v.Charm(u.service.Charm)
		return err
	})
	if err != nil {
		return err
	}

	wantedSeries := charm.SeriesOfBase(u.cmd.Base)
	if wantedSeries != "" && wantedSeries != u.service.Series {
		return console.Hint(fmt.Errorf("the application's machines have series %q, which cannot change", u.service.Series),
			fmt.Sprintf("to deploy the charm as a second application: juju deploy %s --base %s",
				quoteShellWords([]string{u.charmName(), u.cmd.Service + "-new"}), quoteShellWords([]string{u.cmd.Base})))
	}

	u.target, err = u.findTarget(scratch)
	if err != nil {
		return err
	}

	return u.readGiven(scratch)
}

// charmName returns the word by which juju deploy finds the service's charm.
func (u *upgrade) charmName() string {
	origin := u.service.Origin
	if origin.Store != "" {
		return origin.Name
	}
	return cmp.Or(origin.Path, u.current.Meta.Name)
}

// errServiceMoved is returned if somebody else has upgraded the service since it was read. The target must
// then be found again.
var errServiceMoved = errors.New("the application has been switched to a different charm at the same time")

// upgrade is an upgrade of one service, by one call of juju refresh.
type upgrade struct {
	o         *operator
	base      *state.State // the committed state, also in a rehearsal
	state     state.Writer // base, or a rehearsal of it
	cmd       refreshCmd
	service   state.Service
	current   state.Charm // the service's charm
	target    upgradeTarget
	options   map[string]any       // the options that the command sets
	resources []resources.Resource // the resources that the upgrade attaches
	upgrading []state.OutdatedUnit // the units that will upgrade
	skipped   []state.OutdatedUnit // the units that will not upgrade, since they are in error and not forced
}

// isForced reports whether units in error upgrade as well.
func (u *upgrade) isForced() bool { return u.cmd.Force || u.cmd.ForceUnits || u.cmd.Retry }

// upgradeTarget is the charm to which a service upgrades.
type upgradeTarget struct {
	url     charm.URL
	origin  state.Origin
	release *charmRelease // the release to store; nil if the environment already has the charm
	bumped  bool          // url has a newer revision than the charm's directory
	kept    bool          // the charm is one that the environment has kept, possibly with a different name
	store   *storeFinder  // the finder of the release; nil if the charm does not come from the store, or if release is nil
}

// run commits the upgrade. If a different charm has taken the revision in the meantime, it tries the next
// revision.
func (u *upgrade) run() error {
	for {
		err := u.commit()
		if !errors.Is(err, state.ErrRevisionTaken) {
			return err
		}
		u.target.url.Revision++
		u.target.bumped = true
	}
}

// commit stores the new charm and points the service at it. If the service already has that charm, no unit will
// upgrade, and the channel and revision that are recorded for the service stay the same, commit only calls commitGiven.
// It prints the outcome or, in a dry run, the plan. It returns [state.ErrRevisionTaken] if it must store the new charm, but a
// charm of the environment has the new URL and different content.
func (u *upgrade) commit() error {
	// This sets u.upgrading and u.skipped.
	if err := u.readBehind(); err != nil {
		return err
	}

	// A release of the store can have the URL of a different charm: one from this host, or one whose revision this host
	// has raised.
	isCurrent := u.target.url == u.current.URL && !u.isOtherRelease()
	// A service with a charm of the store records its channel and revision there.
	changesStoreOrigin := u.target.origin.Store != "" && u.target.origin != u.service.Origin
	if isCurrent && len(u.upgrading) == 0 && !changesStoreOrigin {
		// Neither the service nor a unit has to switch.
		return u.commitGiven()
	}

	release := u.target.release
	if isCurrent {
		// The environment already has a charm with this URL.
		release = nil
	}
	// If there is nothing to store, writeUpgrade adds nothing, since the environment has the record u.current.
	record := u.current
	if release != nil {
		var err error
		record, err = release.put(u.o, u.state, u.target.url)
		if err != nil {
			return fmt.Errorf("cannot upgrade application %q: %w", u.service.Name, err)
		}
	}

	write := func(tx *state.Tx) error { return u.writeUpgrade(tx, record) }
	if err := u.state.Update(u.o.ctx, write); err != nil {
		return err
	}

	// In a dry run, u.state is a rehearsal, and nothing was committed.
	if u.cmd.DryRun {
		u.printPlan()
		return nil
	}

	// Warn of features that bijou lacks, programs that machines lack, and Python packages that the charm lacks.
	if release != nil {
		u.o.noteUnsupported(release.found.Charm, u.service.PromisedVersion())
		u.o.noteCalls(release.found.Path)
		u.o.notePackages(release)
	}

	// If the upgrade has assigned the revision, the charm's directory also gets it.
	u.writeRevision()
	u.noteSkipped()
	u.o.note("%s", u.describeUpgrade())
	return nil
}

// isOtherRelease reports whether the target is a release of the store that differs from the current charm. Two releases
// can have the same content.
func (u *upgrade) isOtherRelease() bool {
	r := u.target.release
	return r != nil && u.target.store != nil &&
		!u.current.Store.IsRevision(r.ID, r.Revision) && r.File.SHA256 != u.current.SHA256
}

// commitGiven sets the options, resources and trust that the command gives, for a service that already has the
// charm. It prints the outcome or, in a dry run, the plan.
func (u *upgrade) commitGiven() error {
	if err := u.state.Update(u.o.ctx, u.setGiven); err != nil {
		return err
	}

	if u.cmd.DryRun {
		u.printPlan()
		return nil
	}

	u.noteSkipped()
	u.o.note("application %q is already running the latest charm", u.service.Name)
	return nil
}

// writeUpgrade writes the upgrade in one transaction, with the options, resources and trust that the command
// gives. If the target has a release, it adds record, the record of the target's charm. Otherwise the environment
// already has the charm, and record is not used. With --retry, failed hooks of upgrading units run again.
// writeUpgrade returns errServiceMoved if the service's charm has changed since prepare read it.
func (u *upgrade) writeUpgrade(tx *state.Tx, record state.Charm) error {
	latest, err := tx.Service(u.service.Name)
	if err != nil {
		return err
	}
	if latest.Charm != u.service.Charm {
		return errServiceMoved
	}

	// With a release, commit always passes a record with the target's URL. The comparison only guards against
	// the record of a different charm.
	if u.target.release != nil && record.URL == u.target.url {
		if err := tx.AddCharm(record); err != nil {
			return err
		}
	}

	lifted := liftedBy(u.cmd.Force, u.cmd.ForceSeries) // the checks that are turned off
	spec := state.UpgradeSpec{
		Charm:  u.target.url,
		Origin: u.target.origin,
		// A kept charm can have a different name, as from an earlier --switch.
		Switch: u.cmd.Switch != "" || u.target.kept,
		At:     time.Now(),
		Force:  u.isForced(),
		Needs:  lifted.Missing, // the check for missing features
		Series: lifted.Series,  // the check for the service's series
	}

	for _, b := range u.skipped {
		spec.Skip = append(spec.Skip, b.Unit)
	}
	if err := tx.UpgradeService(u.service.Name, spec); err != nil {
		return err
	}
	if err := u.setGiven(tx); err != nil {
		return err
	}

	if u.cmd.Retry {
		return u.retryFailedHooks(tx)
	}
	return nil
}

// retryFailedHooks requests that upgrading units in error run their failed hooks again, except hooks that have failed
// in a relation.
func (u *upgrade) retryFailedHooks(tx *state.Tx) error {
	for _, b := range u.upgrading {
		if !b.InError {
			continue
		}

		const noRelation = "" // the unit's own error
		const retry = true
		_, err := actions.SetResolved(tx, b.Unit, noRelation, retry)
		if err != nil && !errors.Is(err, state.ErrAlreadyResolved) {
			return err
		}
	}

	return nil
}

// readGiven reads the options and resources of the command, as the new charm declares them. It also downloads
// resources of a new release from the store, and stores the content of all resources that setGiven attaches later.
// In a rehearsal it neither downloads nor stores anything.
func (u *upgrade) readGiven(scratch string) error {
	var newCharm *charm.Charm
	if r := u.target.release; r != nil {
		newCharm = r.found.Charm
	} else {
		// The environment already has the charm.
		stored, err := state.Read(u.o.ctx, u.state, func(v *state.View) (state.Charm, error) {
			return v.Charm(u.target.url.String())
		})
		if err != nil {
			return err
		}
		newCharm = &charm.Charm{Meta: &stored.Meta, Config: &stored.Config}
	}

	options, err := u.o.newOptionReader(newCharm.Config, u.service.Name).readWords(u.cmd.Config)
	if err != nil {
		return err
	}
	files, err := u.fetchResources(newCharm.Meta, scratch)
	if err != nil {
		return err
	}

	u.options = options
	u.resources, err = u.o.storeResources(u.state, files)
	if err != nil {
		return err
	}
	// Downloaded resources get the store as their origin. With a nil release, nothing was downloaded.
	u.target.release.markDownloaded(u.resources)
	return nil
}

// setGiven sets the resources, trust and options that the command line gives along with the charm.
func (u *upgrade) setGiven(tx *state.Tx) error {
	if err := putResources(tx, u.service.Name, u.resources); err != nil {
		return err
	}

	if u.cmd.Trust {
		const trusted = true
		if err := tx.SetTrusted(u.service.Name, trusted); err != nil {
			return err
		}
	}

	if len(u.options) == 0 {
		return nil
	}
	_, err := setOptions(tx, u.service.Name, u.options)
	return err
}

// readBehind reads the units that do not run the target. It divides them into units that will upgrade, and
// units in error that will not. A forced upgrade also includes units in error.
func (u *upgrade) readBehind() error {
	behind, err := state.Read(u.o.ctx, u.state, func(v *state.View) ([]state.OutdatedUnit, error) {
		return v.OutdatedUnits(u.service.Name, u.target.url.String())
	})
	if err != nil {
		return err
	}

	u.upgrading = nil
	u.skipped = nil
	for _, b := range behind {
		if b.InError && !u.isForced() {
			u.skipped = append(u.skipped, b)
		} else {
			u.upgrading = append(u.upgrading, b)
		}
	}

	return nil
}

// noteSkipped prints the units in error that do not upgrade, and a hint with the command that upgrades them and runs
// their failed hooks again.
func (u *upgrade) noteSkipped() {
	for _, b := range u.skipped {
		u.o.note("INFO %s", formatSkipped(b))
	}

	if len(u.skipped) > 0 {
		u.o.note(
			"hint: to run the failed hooks again, from the new charm: juju refresh --retry %s",
			u.service.Name,
		)
	}
}

// formatSkipped returns the message about a unit in error that will not upgrade, in the words of Juju.
func formatSkipped(b state.OutdatedUnit) string {
	return fmt.Sprintf("unit %q is not in a running state (state: %s), will not upgrade", b.Unit, b.State)
}

// describeUpgrade returns the message that the service switches charms or, if it already has the target's charm, that
// its remaining units switch. In a dry run, they would switch. If no unit switches either, the message names the
// channel that the service follows.
func (u *upgrade) describeUpgrade() string {
	app := u.service.Name
	current := u.current.URL

	if u.target.url == current {
		switch {
		case len(u.upgrading) == 0:
			// Only the origin changes.
			return fmt.Sprintf("application %q already runs %s, and follows channel %s",
				app, current, u.target.origin.Channel)
		case u.cmd.DryRun:
			return fmt.Sprintf("application %q already runs %s; its remaining units would switch", app, current)
		}
		return fmt.Sprintf("application %q already runs %s; its remaining units switch", app, current)
	}

	verb := "switches"
	if u.cmd.DryRun {
		verb = "would switch"
	}
	return fmt.Sprintf("application %q %s from %s to %s", app, verb, current, u.target.url)
}

// writeRevision writes the revision into the charm's directory if the upgrade has assigned that revision. It does not
// change an archive. If it cannot write the revision, it prints a warning.
func (u *upgrade) writeRevision() {
	r := u.target.release
	// The origin of an archive is the archive itself, not the directory into which it was unpacked.
	isDirectory := r != nil && r.isLocal() && r.found.Path == u.target.origin.Path
	if !u.target.bumped || !isDirectory {
		return
	}

	dir := r.found.Path
	if err := charm.WriteRevision(dir, u.target.url.Revision); err != nil {
		u.o.note("warning: revision %d is recorded only in the model's copy of the charm: %v", u.target.url.Revision, err)
		return
	}
	u.o.note("INFO setting %s to revision %d", dir, u.target.url.Revision)
}

// printPlan prints how the service's charm or channel would change, and which units would and would not upgrade.
func (u *upgrade) printPlan() {
	out := u.o.streams.Out
	changesChannel := u.target.origin.Channel != u.service.Origin.Channel
	if u.target.url == u.current.URL && len(u.upgrading) == 0 && !changesChannel {
		fmt.Fprintf(out, "application %q is already running the latest charm\n", u.service.Name)
	} else {
		fmt.Fprintln(out, u.describeUpgrade())
	}

	for _, b := range u.upgrading {
		fmt.Fprintf(out, "unit %q would upgrade\n", b.Unit)
	}
	for _, b := range u.skipped {
		fmt.Fprintln(out, formatSkipped(b))
	}
}

// findTarget finds the new charm of the service: the earlier charm that juju rollback has chosen, the charm that the
// flags name, or else the newest charm at the current charm's origin.
func (u *upgrade) findTarget(scratch string) (upgradeTarget, error) {
	c := u.cmd
	if c.back != nil {
		return keptTarget(*c.back)
	}
	name, isStore, err := u.storeName()
	if err != nil {
		return upgradeTarget{}, err
	}
	if isStore {
		return u.findStoreTarget(name, scratch)
	}
	if c.Channel != "" {
		return upgradeTarget{}, console.Usage(errors.New("the application's charm is not from the store, and only the store has channels"))
	}

	return u.findLocalTarget(scratch)
}

// findLocalTarget does what findTarget does, for a charm that does not come from the store.
func (u *upgrade) findLocalTarget(scratch string) (upgradeTarget, error) {
	c := u.cmd
	if c.Revision != nil {
		kept, err := state.Read(u.o.ctx, u.state, func(v *state.View) (*state.KeptCharm, error) {
			return findKept(v, u.service, *c.Revision)
		})
		if err != nil {
			return upgradeTarget{}, err
		}
		// A charm that the environment has takes precedence over the files on this host.
		if kept != nil {
			return keptTarget(*kept)
		}
	}

	release, err := u.findCharm(scratch)
	if err != nil && c.Revision != nil {
		return upgradeTarget{}, u.o.withKeptHint(u.state, u.service.Name, err)
	}
	if err != nil {
		return upgradeTarget{}, err
	}

	found := release.found
	url := charm.URL{Series: u.current.URL.Series, Name: found.Meta.Name, Revision: found.Revision}
	// For a charm on this host, origin needs neither a channel nor a series.
	t := upgradeTarget{url: url, origin: release.origin("", ""), release: release}
	if c.Switch == "" && release.repository == "" {
		// The service keeps its path, and the name under which it was deployed.
		t.origin = u.service.Origin
	}

	if c.Revision != nil && found.Revision != *c.Revision {
		err := fmt.Errorf("%s has revision %d of charm %q, and the model has no revision %d",
			cmp.Or(found.Archive, found.Path), found.Revision, found.Meta.Name, *c.Revision)
		return t, u.o.withKeptHint(u.state, u.service.Name, err)
	}

	isNewer := url.Name != u.current.URL.Name || url.Revision > u.current.URL.Revision
	if c.Revision != nil || isNewer {
		return t, nil
	}
	// Different files with the current revision or an older one need a new revision.
	return u.bumpRevision(t)
}

// keptTarget returns the target for a charm that the environment has kept.
func keptTarget(kept state.KeptCharm) (upgradeTarget, error) {
	url, err := charm.ParseURL(kept.Charm)
	return upgradeTarget{url: url, origin: kept.Origin, kept: true}, err
}

// findCharm finds the charm at the source that the flags name, or at the origin of the service's charm.
func (u *upgrade) findCharm(scratch string) (*charmRelease, error) {
	c := u.cmd
	origin := u.service.Origin
	source := charmSource{name: c.Switch, repository: c.Repository, tools: u.o.parts.HookTools}
	if c.Switch != "" {
		source.series = u.lookupSeries()
		return source.find(u.o.ctx, scratch)
	}

	source.repository = cmp.Or(c.Repository, origin.Repository)
	if source.repository == "" {
		source.name = origin.Path
		return source.find(u.o.ctx, scratch)
	}

	// Revision -1 stands for the greatest revision in the repository.
	ref := charm.Ref{Name: u.current.Meta.Name, Revision: -1}
	if c.Revision != nil {
		ref.Revision = *c.Revision
	}
	return source.findInRepository(u.o.ctx, charmsource.Wish{
		Name:   ref.String(),
		Series: cmp.Or(origin.Series, u.lookupSeries()),
	})
}

// lookupSeries returns the series that a charm in a repository must support, or "" for any series.
func (u *upgrade) lookupSeries() string {
	if liftedBy(u.cmd.Force, u.cmd.ForceSeries).Series || u.service.ForceSeries {
		return ""
	}
	return u.service.Series
}

// bumpRevision returns the target t with the next revision after the current charm's revision. The charm of t has
// the current charm's name, and a revision that is not newer. If its files are the same as the current charm's files,
// bumpRevision returns the current charm as the target.
func (u *upgrade) bumpRevision(t upgradeTarget) (upgradeTarget, error) {
	isSame, err := u.o.isSameCharm(t.release.found, u.current)
	if err != nil {
		return upgradeTarget{}, err
	}
	if isSame {
		return upgradeTarget{url: u.current.URL, origin: t.origin}, nil
	}

	t.url.Revision = u.current.URL.Revision + 1
	t.bumped = true
	return t, nil
}

// isSameCharm reports whether the found files are the files of the charm c. It packs the found files by the
// current rules and, if the checksums differ, by the rules of former binaries.
func (o *operator) isSameCharm(found charm.Found, c state.Charm) (bool, error) {
	for _, former := range []bool{false, true} {
		info, err := charm.Archive(found.Path, io.Discard, charm.ArchiveOptions{
			Tools:    o.parts.HookTools,
			Revision: c.URL.Revision,
			Unpacked: found.Archive, // empty if the charm was found in a directory
			Former:   former,
		})
		if err == nil && info.SHA256 == c.SHA256 {
			return true, nil
		}
		// By the former rules, a file may cause an error although the current rules leave the file out.
		if err != nil && !former {
			return false, err
		}
	}

	return false, nil
}
