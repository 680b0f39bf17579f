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
	"bijou/state/resources"
	"bijou/state/sweep"
)

type upgradeCharmCmd struct {
	Service     string   `arg:"" name:"application" help:"The application."`
	Repository  string   `env:"JUJU_REPOSITORY" placeholder:"DIR" help:"Take charms from this directory (SERIES/NAME or NAME); default: where the charm came from."`
	Switch      string   `aliases:"path" placeholder:"CHARM" help:"Switch to a different charm: ch:NAME of the store, a directory (./DIR), an archive, or a name in the repository."`
	Channel     string   `placeholder:"CHANNEL" help:"Follow this channel of the store from now on, as 14/stable."`
	Revision    *int     `placeholder:"N" help:"Use this revision, even an older one; juju show-application lists them. Default: the greatest."`
	Force       bool     `help:"Also upgrade units in an error state, as --force-units does, and accept a charm for other series, as --force-series does, or one that needs what bijou lacks."`
	ForceUnits  bool     `help:"Also upgrade units in an error state, at once; they stay in that state."`
	ForceSeries bool     `aliases:"force-base" help:"Accept a charm that does not support the series or architecture of the application's machines."`
	Retry       bool     `help:"Also upgrade units in an error state, at once; the failed hook runs again, from the new charm."`
	Base        string   `placeholder:"BASE" help:"Check the base of its machines (ubuntu@24.04), which cannot change."`
	Config      []string `sep:"none" placeholder:"FILE|K=V" help:"Set options with the upgrade, from a YAML file as for deploy, or one option. Can be repeated; later ones override."`
	Resource    []string `sep:"none" placeholder:"NAME=FILE" help:"Attach a file as a resource of the charm; can be repeated."`
	Trust       bool     `help:"Give its units the cloud's credential, as juju trust does."`
	Storage     []string `hidden:"" sep:"none" placeholder:"NAME=POOL,SIZE,COUNT"`
	DryRun      bool     `help:"Only print the changes."`
	waitFlags

	back *state.KeptCharm // the charm that the service goes back to; nil: what the flags say
}

// Run finds the charm, stores it, and points the service at it.
func (c upgradeCharmCmd) Run(o *operator) error {
	if c.Switch != "" && c.Revision != nil {
		return console.Usage(errors.New("--switch and --revision cannot be used together: the charm to switch to has its own revision"))
	}

	if len(c.Storage) > 0 {
		name, _, _ := strings.Cut(c.Storage[0], "=")
		return console.Hint(console.Usage(errors.New("cannot change storage with a charm: units keep the storage that they have")),
			fmt.Sprintf("to give a unit more: juju add-storage %s", quoteShellWords([]string{c.Service + "/0", name})))
	}

	return o.openChosen(func(s *state.State) error {
		o.noteAffected(untilIdle, c.Service)
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

// sweepCharms removes the revisions that an upgrade leaves behind, and that no unit runs.
func (o *operator) sweepCharms(s *state.State) {
	if err := sweep.Charms(o.ctx, s, time.Now()); err != nil {
		o.note("warning: revisions that no unit runs are left for later: %v", err)
	}
}

// settle upgrades the service, and begins again if it was upgraded by someone else meanwhile. It writes to s,
// which is base or a rehearsal of it.
func (c upgradeCharmCmd) settle(o *operator, base *state.State, s state.Writer) error {
	err := c.upgrade(o, base, s)
	for errors.Is(err, errServiceMoved) {
		err = c.upgrade(o, base, s)
	}
	return err
}

// upgrade finds the charm, reads options and resources for it, and carries the upgrade out.
func (c upgradeCharmCmd) upgrade(o *operator, base *state.State, s state.Writer) error {
	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}
	defer os.RemoveAll(scratch)

	u := &upgrade{o: o, base: base, state: s, cmd: c}
	err = s.View(o.ctx, func(v *state.View) (err error) {
		u.service, err = v.Service(c.Service)
		if err != nil {
			return err
		}

		u.current, err = v.Charm(u.service.Charm)
		return err
	})

	wantedSeries := charm.SeriesOfBase(c.Base)
	if err == nil && wantedSeries != "" && wantedSeries != u.service.Series {
		err = console.Hint(fmt.Errorf("its machines have series %q, and keep it", u.service.Series),
			fmt.Sprintf("deploy it beside this one: juju deploy %s --base %s",
				quoteShellWords([]string{u.charmName(), c.Service + "-new"}), quoteShellWords([]string{c.Base})))
	}
	if err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}

	u.target, err = u.findTarget(scratch)
	if said, ok := errors.AsType[rehearsedError](err); ok {
		return said.error
	}
	if err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}
	if err := u.readGiven(scratch); err != nil {
		return fmt.Errorf("cannot upgrade application %q: %w", c.Service, err)
	}

	return u.run()
}

// charmName returns the word that juju deploy knows the service's charm by.
func (u *upgrade) charmName() string {
	origin := u.service.Origin
	if origin.Store != "" {
		return origin.Name
	}
	return cmp.Or(origin.Path, u.current.Meta.Name)
}

// errServiceMoved means that somebody else upgraded the service since it was read, so that
// the target has to be found again.
var errServiceMoved = errors.New("the application has switched to a different charm meanwhile")

type upgrade struct {
	o         *operator
	base      *state.State // what is read of it is as committed
	state     state.Writer
	cmd       upgradeCharmCmd
	service   state.Service
	current   state.Charm // what the service runs
	target    upgradeTarget
	options   map[string]any       // that are set with it
	resources []resources.Resource // that are given with it
	upgrading []state.OutdatedUnit // the units that go over, as they were read last
	skipped   []state.OutdatedUnit // those that do not: in error, and not forced
}

// isForced reports whether units in error go over, too.
func (u *upgrade) isForced() bool { return u.cmd.Force || u.cmd.ForceUnits || u.cmd.Retry }

type upgradeTarget struct {
	url    charm.URL
	origin state.Origin
	found  charm.Found  // its files; empty path: the environment has it already
	bumped bool         // url has a revision that the folder does not say yet
	kept   bool         // the environment has it, of whatever name
	store  *storeFinder // its release; nil: it is not the store's, or the environment has it already
}

// isNew reports whether the environment may not have the charm yet.
func (t upgradeTarget) isNew() bool { return t.found.Path != "" || t.store != nil }

// run commits the upgrade. If another service has taken the revision meanwhile, it tries the next one.
func (u *upgrade) run() error {
	for {
		err := u.commit()
		if !errors.Is(err, state.ErrRevisionTaken) {
			return err
		}
		u.target.url.Revision++ // another service brought another charm of that revision
		u.target.bumped = true
	}
}

// commit stores the new charm and points the service at it. If the service runs that charm already, it only
// sets the options and resources that the command gives.
func (u *upgrade) commit() error {
	err := u.readBehind()
	if err != nil {
		return err
	}

	same := u.target.url == u.current.URL
	follows := u.target.origin.Store != "" && u.target.origin != u.service.Origin
	if same && len(u.upgrading) == 0 && !follows {
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

	record := u.current
	if u.target.isNew() && !same {
		if record, err = u.storeCharm(); err != nil {
			return fmt.Errorf("cannot upgrade application %q: %w", u.service.Name, err)
		}
	}
	if err := u.state.Update(u.o.ctx, func(tx *state.Tx) error {
		return u.writeUpgrade(tx,
			record)
	}); err != nil {
		return err
	}

	if u.cmd.DryRun {
		u.printPlan()
		return nil
	}

	if u.target.found.Path != "" && !same {
		u.o.noteUnsupported(u.target.found.Charm, u.service.PromisedVersion())
		u.o.noteCalls(u.target.found.Path)
	}

	u.writeRevision()
	u.noteSkipped()
	u.o.note("%s", u.describeMove("switches"))
	return nil
}

func (u *upgrade) storeCharm() (state.Charm, error) {
	if f := u.target.store; f != nil {
		return f.release.put(u.o, u.state, u.target.found.Charm, u.target.url)
	}
	return u.o.storeCharm(u.state, u.target.found, u.target.url)
}

// writeUpgrade writes the upgrade in one transaction. It returns errServiceMoved if the service's charm has
// changed since it was read.
func (u *upgrade) writeUpgrade(tx *state.Tx, record state.Charm) error {
	now, err := tx.Service(u.service.Name)
	if err != nil {
		return err
	}
	if now.Charm != u.service.Charm {
		return errServiceMoved
	}

	if u.target.isNew() && record.URL == u.target.url {
		if err := tx.AddCharm(record); err != nil {
			return err
		}
	}

	lifted := liftedBy(u.cmd.Force, u.cmd.ForceSeries)
	spec := state.UpgradeSpec{
		Charm:  u.target.url,
		Origin: u.target.origin,
		Switch: u.cmd.Switch != "" || u.target.kept,
		At:     time.Now(),
		Force:  u.isForced(),
		Needs:  lifted.Missing,
		Series: lifted.Series,
	}

	for _, b := range u.skipped {
		spec.Skip = append(spec.Skip, b.Unit)
	}
	if err := tx.UpgradeService(u.service.Name, spec); err != nil {
		return err
	}
	if err := u.setGiven(tx); err != nil || !u.cmd.Retry {
		return err
	}

	for _, b := range u.upgrading {
		if !b.InError {
			continue
		}
		if _, err := actions.SetResolved(tx, b.Unit, "", true); err != nil && !errors.Is(err, state.ErrAlreadyResolved) {
			return err
		}
	}

	return nil
}

// readGiven reads the options and resources of the command, as the new charm declares them.
func (u *upgrade) readGiven(scratch string) error {
	to := u.target.found.Charm
	if to == nil {
		stored, err := state.Read(u.o.ctx, u.state, func(v *state.View) (state.Charm, error) {
			return v.Charm(u.target.url.String())
		})
		if err != nil {
			return err
		}
		to = &charm.Charm{Meta: &stored.Meta, Config: &stored.Config}
	}

	options, err := u.o.newOptionReader(to.Config, u.service.Name).readWords(u.cmd.Config)
	if err != nil {
		return err
	}
	files, err := u.resourceFiles(to.Meta, scratch)
	if err != nil {
		return err
	}

	u.options = options
	if u.resources, err = u.o.storeResources(u.state, files); err != nil {
		return err
	}
	if f := u.target.store; f != nil {
		f.release.mark(u.resources)
	}
	return nil
}

// setGiven sets the resources, trust and options that the command line gives along with the charm.
func (u *upgrade) setGiven(tx *state.Tx) error {
	err := putResources(tx, u.service.Name, u.resources)
	if err != nil {
		return err
	}

	if u.cmd.Trust {
		if err := tx.SetTrusted(u.service.Name, true); err != nil {
			return err
		}
	}

	if len(u.options) > 0 {
		_, err = setOptions(tx, u.service.Name, u.options)
	}

	return err
}

// readBehind reads the units that run another charm, and divides them into those that will upgrade and those
// in error, which do not.
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

// noteSkipped names the units in error that do not upgrade.
func (u *upgrade) noteSkipped() {
	for _, b := range u.skipped {
		u.o.note("INFO %s", formatSkipped(b))
	}

	if len(u.skipped) > 0 {
		u.o.note(
			"hint: to run the failed hooks again, from the new charm: juju upgrade-charm --retry %s",
			u.service.Name,
		)
	}
}

func formatSkipped(b state.OutdatedUnit) string {
	return fmt.Sprintf("unit %q is not in a running state (state: %s), will not upgrade", b.Unit, b.State)
}

// describeMove completes the message about the upgrade. goes is the verb: "goes over" or "would go over".
func (u *upgrade) describeMove(goes string) string {
	switch {
	case u.target.url == u.current.URL && len(u.upgrading) == 0:
		return fmt.Sprintf("application %q already runs %s, and follows channel %s",
			u.service.Name, u.current.URL, u.target.origin.Channel)
	case u.target.url == u.current.URL:
		return fmt.Sprintf("application %q already runs %s, and its remaining units: %s",
			u.service.Name, u.current.URL, goes)
	}
	return fmt.Sprintf("application %q %s from %s to %s", u.service.Name, goes, u.current.URL, u.target.url)
}

// writeRevision writes the revision that the environment assigned into the charm's folder.
func (u *upgrade) writeRevision() {
	dir := u.target.found.Path
	if !u.target.bumped || dir == "" || dir != u.target.origin.Path {
		return // an archive stays as it is
	}
	if err := charm.WriteRevision(dir, u.target.url.Revision); err != nil {
		u.o.note("warning: revision %d is only in the model's copy: %v", u.target.url.Revision, err)
		return
	}
	u.o.note("INFO setting %s to revision %d", dir, u.target.url.Revision)
}

// printPlan prints the result of the rehearsal.
func (u *upgrade) printPlan() {
	out := u.o.streams.Out
	follows := u.target.origin.Channel != u.service.Origin.Channel
	if u.target.url == u.current.URL && len(u.upgrading) == 0 && !follows {
		fmt.Fprintf(out, "application %q is already running the latest charm\n", u.service.Name)
	} else {
		fmt.Fprintln(out, u.describeMove("would switch"))
	}

	for _, b := range u.upgrading {
		fmt.Fprintf(out, "unit %q would upgrade\n", b.Unit)
	}
	for _, b := range u.skipped {
		fmt.Fprintln(out, formatSkipped(b))
	}
}

// findTarget finds the charm to upgrade to: the one to switch to, a revision that the environment has, or
// the greatest revision in the place that the charm came from.
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
		return upgradeTarget{}, console.Usage(errors.New("its charm is not from the store, and only the store has channels"))
	}

	if c.Revision != nil {
		kept, err := state.Read(u.o.ctx, u.state, func(v *state.View) (*state.KeptCharm, error) {
			return findKept(v, u.service, *c.Revision)
		})
		if err != nil {
			return upgradeTarget{}, err
		}
		if kept != nil {
			return keptTarget(*kept)
		}
	}

	found, origin, err := u.findCharm(scratch)
	if err != nil && c.Revision != nil {
		return upgradeTarget{}, u.o.withKeptHint(u.state, u.service.Name, err)
	}
	if err != nil {
		return upgradeTarget{}, err
	}

	url := charm.URL{Series: u.current.URL.Series, Name: found.Meta.Name, Revision: found.Revision}
	t := upgradeTarget{url: url, origin: origin, found: found}
	switch {
	case c.Revision != nil && found.Revision != *c.Revision:
		err := fmt.Errorf("%s has revision %d of charm %q, and the model has no revision %d",
			cmp.Or(found.Archive, found.Path), found.Revision, found.Meta.Name, *c.Revision)
		return t, u.o.withKeptHint(u.state, u.service.Name, err)
	case c.Revision != nil, url.Name != u.current.URL.Name, url.Revision > u.current.URL.Revision:
		return t, nil
	}

	return u.bumpRevision(t)
}

func keptTarget(kept state.KeptCharm) (upgradeTarget, error) {
	url, err := charm.ParseURL(kept.Charm)
	return upgradeTarget{url: url, origin: kept.Origin, kept: true}, err
}

// findCharm reads the charm from the place that the flags name, or from the place that the service's charm
// came from.
func (u *upgrade) findCharm(scratch string) (charm.Found, state.Origin, error) {
	c := u.cmd
	origin := u.service.Origin
	tools := u.o.parts.HookTools
	repository := c.Repository
	switch {
	case c.Switch != "":
		return charmSource{
			name:       c.Switch,
			repository: repository,
			series:     u.lookupSeries(),
			tools:      tools,
		}.find(scratch)
	case repository == "" && origin.Repository == "":
		found, _, err := charmSource{name: origin.Path, tools: tools}.find(scratch)
		return found, origin, err
	case repository == "":
		repository = origin.Repository
	}

	ref := charm.Ref{Series: cmp.Or(origin.Series, u.lookupSeries()), Name: u.current.Meta.Name, Revision: -1}
	if c.Revision != nil {
		ref.Revision = *c.Revision
	}
	return findInRepository(repository, ref)
}

// lookupSeries returns "" for any.
func (u *upgrade) lookupSeries() string {
	if liftedBy(u.cmd.Force, u.cmd.ForceSeries).Series || u.service.ForceSeries {
		return ""
	}
	return u.service.Series
}

// bumpRevision gives files whose revision is not newer than the service's charm the next
// revision, unless they are that charm's own files.
func (u *upgrade) bumpRevision(t upgradeTarget) (upgradeTarget, error) {
	isSame, err := u.o.isSameCharm(t.found, u.current)
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

// isSameCharm reports whether the files are the charm's own, packed as this binary does or as former ones
// did. A service does not go over to the charm that it runs.
func (o *operator) isSameCharm(found charm.Found, c state.Charm) (bool, error) {
	for _, former := range []bool{false, true} {
		info, err := charm.Archive(found.Path, io.Discard, charm.ArchiveOptions{
			Tools:    o.parts.HookTools,
			Revision: c.URL.Revision,
			Unpacked: found.Archive,
			Former:   former,
		})
		if err == nil && info.SHA256 == c.SHA256 {
			return true, nil
		}
		// The former rules may refuse a file that the present ones leave out.
		if err != nil && !former {
			return false, err
		}
	}

	return false, nil
}
