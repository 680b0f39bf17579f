package juju

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/constraints"
	"bijou/state/resources"
)

// refuseStoreFlags returns an error for flags that apply only to charms from the store.
func (c deployCmd) refuseStoreFlags() error {
	if c.Channel == "" && c.Revision == 0 {
		return nil
	}
	err := fmt.Errorf("--channel and --revision are only for charms from the store, and %q is not one", c.Charm)
	return console.Usage(console.Hint(err, "name a charm from the store without a path, or as ch:NAME"))
}

// deployFromStore finds the charm or bundle called name in the store, and deploys it. It rehearses the
// deployment of a charm before it downloads the charm.
func (c deployCmd) deployFromStore(o *operator, name string) error {
	channel, err := charmsource.ParseChannel(c.Channel)
	if err != nil {
		return console.Usage(err)
	}
	if c.Revision < 0 {
		return console.Usage(fmt.Errorf("invalid --revision %d: want a number from 1", c.Revision))
	}

	// The store must get the base as the operator gave it. takeSeries replaces a base with its series.
	base := c.Series
	if err := c.takeSeries(); err != nil {
		return err
	}
	service, err := c.newService(name)
	if err != nil {
		return err
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return fmt.Errorf("cannot deploy %q: %w", c.Charm, err)
	}
	defer os.RemoveAll(scratch)

	bundlePath := ""
	err = o.openChosen(func(s *state.State) error {
		st, err := o.openCharmStore(s)
		if err != nil {
			return err
		}

		f := storeFinder{
			charmStore: st,
			name:       name,
			channel:    channel,
			revision:   c.Revision,
			base:       base,
			words:      c.Resource,
		}
		bundlePath, err = c.deployCharmOrFetchBundle(o, &f, service, scratch)
		return err
	})
	if err != nil {
		return err
	}
	if bundlePath == "" {
		return nil // the charm is deployed
	}

	// deployBundle opens the environment itself. The given channel and revision are those of the bundle, not of its
	// charms.
	c.Channel = ""
	c.Revision = 0
	return c.deployBundle(o, bundlePath)
}

// deployCharmOrFetchBundle finds the charm or bundle that f names. It deploys a charm, and returns "". It only
// downloads a bundle, and returns the path of its bundle.yaml below scratch.
func (c deployCmd) deployCharmOrFetchBundle(
	o *operator,
	f *storeFinder,
	service state.Service,
	scratch string,
) (bundlePath string, err error) {
	if err := f.find(service); err != nil {
		return "", o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
	}

	if f.release.Type == charmsource.TypeBundle {
		return f.downloadBundle(f.release, scratch)
	}
	return "", c.deployFound(o, f, service, scratch)
}

// deployFound deploys the charm that f has found. It returns an error if a flag applies only to bundles, and adds
// a hint about --force to errors that --force would avoid.
func (c deployCmd) deployFound(o *operator, f *storeFinder, service state.Service, scratch string) error {
	if err := c.refuseBundleFlags(); err != nil {
		return err
	}
	d, err := c.prepareFromStore(o, f, service, scratch)
	if err != nil {
		return o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
	}
	return c.execute(f.state, d)
}

// prepareFromStore returns the deployment of the charm that f has found, with the downloaded files below
// scratch. It rehearses the deployment before it downloads anything.
func (c deployCmd) prepareFromStore(
	o *operator,
	f *storeFinder,
	service state.Service,
	scratch string,
) (*deployment, error) {
	if err := f.describe(scratch); err != nil {
		return nil, err
	}
	// The files of resources follow below, once the rehearsal has succeeded.
	d, err := c.prepare(o, f.release, service, nil)
	if err != nil {
		return nil, err
	}

	d.channel = f.channel
	if err := d.rehearse(f.state); err != nil {
		return nil, err
	}

	if err := f.download(scratch); err != nil {
		return nil, err
	}
	d.files, err = f.getResources(scratch)
	return d, err
}

// download downloads the charm and sets f.release.found. It does nothing for a release of the environment, since
// describe has already read its archive. It returns an error if the downloaded charm is not the charm that the
// store described.
func (f *storeFinder) download(scratch string) error {
	if f.release.kept {
		return nil
	}

	described := f.release.found.Meta
	if err := f.release.download(f.o, scratch); err != nil {
		return err
	}

	downloaded := f.release.found.Meta
	if downloaded.Subordinate != described.Subordinate || downloaded.Name != described.Name {
		return fmt.Errorf("the download is not the charm %q that the store describes", f.name)
	}
	return nil
}

// rehearse runs a copy of the deployment in a rehearsal, without the files of resources and without output. It returns
// the error of the rehearsal.
func (d *deployment) rehearse(s *state.State) error {
	return s.Rehearse(d.o.ctx, func(r *state.Rehearsal) error {
		try := *d
		try.o = d.o.silenced()
		try.state = r
		try.files = nil
		return try.run()
	})
}

// storeFinder finds a charm in the store that an operator named.
type storeFinder struct {
	*charmStore
	name     string
	channel  string
	revision int      // 0 for the channel's release
	base     string   // a series or base; empty for the series of the environment's machines
	words    []string // resources, as NAME=FILE or NAME=REVISION

	// The results of find.
	wish    charmsource.Wish
	release *charmRelease
	given   map[string]string // files of resources, by name
	picked  map[string]int    // revisions of resources in the store, by name
}

// find finds the release, and sets f.release, f.wish, f.given and f.picked. If the environment already has
// the wanted revision, find does not ask the store. If the store cannot be reached, find uses the newest wanted
// release that the environment has, and prints a warning. Without such a release, it returns the store's error.
// It can also print a note that the release is for a different base than the environment's machines.
func (f *storeFinder) find(service state.Service) error {
	given, revisions, err := splitResources(f.words)
	if err != nil {
		return err
	}
	f.given = given
	f.picked = revisions
	f.wish = f.wishFor(service, f.base)
	f.wish.Name = f.name
	f.wish.Channel = f.channel
	f.wish.Revision = f.revision

	kept, err := f.findKeptRelease() // a release that the environment has, or nil
	if err != nil {
		return err
	}
	// A revision never changes. A channel can have a newer release, so the store must be asked.
	if kept != nil && f.revision > 0 {
		f.release = kept
		return nil
	}

	f.release, err = f.resolve(f.wish)
	if kept != nil && errors.Is(err, charmsource.ErrAway) {
		f.o.note("warning: %v", err)
		f.o.note("using revision %d, which is already in this model", kept.Revision)
		f.release = kept
		err = nil
	}
	if err != nil {
		return err
	}

	f.noteBase(f.release, f.wish)
	return nil
}

// findKeptRelease returns the newest release that the environment has and the operator wants. It returns nil
// if there is none.
func (f *storeFinder) findKeptRelease() (*charmRelease, error) {
	charms, err := state.Read(f.o.ctx, f.state, (*state.View).Charms)
	if err != nil {
		return nil, err
	}

	var newest *state.Charm
	for i, c := range charms {
		if c.Store == nil || c.Store.Name != f.name || !f.wants(c.Store) {
			continue
		}
		if newest == nil || c.Store.Revision > newest.Store.Revision {
			newest = &charms[i]
		}
	}
	if newest == nil {
		return nil, nil
	}

	kept := keptRelease(*newest)
	kept.source = f.charmStore
	// A release that was named by its revision has no channel.
	if f.revision == 0 {
		kept.Channel = newest.Store.Channel
	}
	return kept, nil
}

// wants reports whether a charm of the wanted name has the wanted revision or, if none is given, comes from
// the wanted channel. Only the store knows the track of the default channel, so for that channel c.Default tells
// whether the charm came from it.
func (f *storeFinder) wants(c *state.StoreCharm) bool {
	if f.revision > 0 {
		return c.Revision == f.revision
	}
	if f.channel == charmsource.DefaultChannel {
		return c.Default
	}
	return c.Channel != "" && charmsource.WholeChannel(c.Channel) == charmsource.WholeChannel(f.channel)
}

// keptRelease returns the release from which the environment's charm came, in the form in which the store
// describes releases. The release has no channel and no source.
func keptRelease(c state.Charm) *charmRelease {
	var bases []charmsource.Base
	for _, text := range c.Store.Bases {
		base := parseBase(text)
		// The record of a charm has no architecture.
		base.Arch = constraints.HostArch()
		bases = append(bases, base)
	}

	what := fmt.Sprintf("charm %s, revision %d", c.Store.Name, c.Store.Revision)
	return &charmRelease{kept: true, Release: charmsource.Release{
		Type:     charmsource.TypeCharm,
		ID:       c.Store.ID,
		Name:     c.Store.Name,
		Revision: c.Store.Revision,
		Bases:    bases,
		File:     charmsource.File{What: what, Size: c.Size, SHA256: c.SHA256},
	}}
}

// describe reads the charm from the store's description, without a download, and finds the revisions of
// resources that the operator picked. If the environment has the release, describe reads the release's
// archive instead. describe sets f.release.found and f.release.Resources. It returns an error if checkGiven
// refuses a resource.
func (f *storeFinder) describe(scratch string) (err error) {
	if f.release.kept {
		err = f.release.download(f.o, scratch) // takes the environment's copy
	} else {
		err = f.release.readDescription()
	}
	if err != nil {
		return err
	}

	// If machines can have any series, they get the series of the release.
	if base := f.release.Base; len(f.env.MachineSeries()) == 0 && base.Name != "" {
		f.release.found.Series = charm.SeriesOfBase(base.String())
	}
	if err := f.checkGiven(); err != nil {
		return err
	}
	return f.pickResources()
}

// pickResources asks the store for the revisions of resources that the operator picked. In
// f.release.Resources, they replace the released revisions.
func (f *storeFinder) pickResources() error {
	if len(f.picked) == 0 {
		return nil
	}
	release, err := charmsource.ResolveOne(f.o.ctx, f, charmsource.Wish{
		Name:      f.name,
		Revision:  f.release.Revision,
		Arch:      f.wish.Arch,
		Resources: f.picked,
	})
	if err != nil {
		return err
	}

	// The answer can also have resources that the operator did not pick, which are equally valid.
	answered := release.Resources
	isReplaced := func(old charmsource.Resource) bool {
		return slices.ContainsFunc(answered, func(r charmsource.Resource) bool { return r.Name == old.Name })
	}
	f.release.Resources = slices.DeleteFunc(f.release.Resources, isReplaced)
	f.release.Resources = append(f.release.Resources, answered...)
	return nil
}

// checkGiven returns an error for given or picked resources that the charm does not have or that are not files.
// It also returns an error for a path that is not a regular file within the size limit.
func (f *storeFinder) checkGiven() error {
	for _, name := range slices.Sorted(maps.Keys(f.picked)) {
		if _, err := f.release.found.Meta.ResourceFile(name); err != nil {
			return err
		}
	}

	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if _, err := f.release.found.Meta.ResourceFile(name); err != nil {
			return err
		}
		if err := checkResourceFile(f.given[name]); err != nil {
			return charm.Invalidf("cannot attach resource %q: %w", name, err)
		}
	}
	return nil
}

// splitResources separates the words NAME=FILE from the words NAME=REVISION. A number from 0 is a revision, unless
// a file with that name exists. Everything else is a file, whose existence splitResources does not check.
func splitResources(words []string) (files map[string]string, revisions map[string]int, err error) {
	files, err = parsePairs(words)
	if err != nil {
		return nil, nil, err
	}

	revisions = map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		n, err := strconv.Atoi(files[name])
		isNumber := err == nil && n >= 0
		_, statErr := os.Stat(files[name])
		if isNumber && statErr != nil {
			revisions[name] = n
			delete(files, name)
		}
	}
	return files, revisions, nil
}

// getResources returns the files of the charm's resources, by name. For a resource without a given file, it
// writes the store's file below scratch. It leaves out resources that are not files, and resources for which
// the store has no file. f.release.resources gets the revisions of the files from the store.
func (f *storeFinder) getResources(scratch string) (map[string]string, error) {
	released, err := f.findResources()
	if err != nil {
		return nil, err
	}

	files := maps.Clone(f.given)
	f.release.resources = map[string]int{}
	for _, resource := range released {
		name := resource.Name
		_, err := f.release.found.Meta.ResourceFile(name)
		hasFile := err == nil && resource.File.URL != ""
		if files[name] != "" || !hasFile {
			continue
		}
		if resource.File.Size > resources.MaxSize {
			return nil, fmt.Errorf("resource %q is larger than the limit of %d MiB", name, resources.MaxSize>>20)
		}

		path := filepath.Join(scratch, "resource-"+name)
		if err := f.getFile(f.o.ctx, resource.File, path, resourceFile); err != nil {
			return nil, err
		}
		files[name] = path
		f.release.resources[name] = resource.Revision
	}
	return files, nil
}

// findResources returns the store's resources for the release. A release that was found by its revision, or
// that comes from the environment, can lack resources. findResources takes the missing resources from the
// channel's current release. If it cannot find that release, it prints a warning and leaves the missing
// resources out.
func (f *storeFinder) findResources() ([]charmsource.Resource, error) {
	var missing []string
	for name := range f.release.found.Meta.Resources {
		isNamed := func(r charmsource.Resource) bool { return r.Name == name }
		if f.given[name] != "" || slices.ContainsFunc(f.release.Resources, isNamed) {
			continue
		}
		if _, err := f.release.found.Meta.ResourceFile(name); err == nil {
			missing = append(missing, name)
		}
	}
	// The store names all resources of a channel's release, so a missing one does not exist there.
	isChannelRelease := f.release.Channel != "" && !f.release.kept
	if len(missing) == 0 || isChannelRelease {
		return f.release.Resources, nil
	}

	// Without a revision, the wish is for the channel's release.
	wish := f.wish
	wish.Revision = 0
	current, err := charmsource.ResolveOne(f.o.ctx, f, wish)
	if err != nil {
		f.o.note("warning: cannot find out which resources belong to this release: %v", err)
		return f.release.Resources, nil
	}

	combined := slices.Clone(f.release.Resources)
	for _, r := range current.Resources {
		if slices.Contains(missing, r.Name) {
			combined = append(combined, r)
		}
	}
	return combined, nil
}
