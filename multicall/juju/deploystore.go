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

// refuseStoreFlags refuses flags that are of the store's charms.
func (c deployCmd) refuseStoreFlags() error {
	if c.Channel == "" && c.Revision == 0 {
		return nil
	}
	err := fmt.Errorf("--channel and --revision are for charms of the store, and %q is not one", c.Charm)
	return console.Usage(console.Hint(err, "name a charm of the store without a path, or as ch:NAME"))
}

// deployFromStore finds the charm or bundle with that name in the store, and deploys it. It checks all that
// it can before it downloads anything.
func (c deployCmd) deployFromStore(o *operator, name string) error {
	channel, err := charmsource.ParseChannel(c.Channel)
	if err != nil {
		return console.Usage(err)
	}
	if c.Revision < 0 {
		return console.Usage(fmt.Errorf("invalid --revision %d: want a number from 1", c.Revision))
	}
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
		if err := f.find(service); err != nil {
			return o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
		}
		if f.release.Type == charmsource.TypeBundle {
			bundlePath, err = st.downloadBundle(f.release, scratch)
			return err
		}
		if err := c.refuseBundleFlags(); err != nil {
			return err
		}

		d, err := c.prepareFromStore(o, &f, service, scratch)
		if err != nil {
			return o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
		}

		d.state = s
		o.noteAffected(untilIdle, d.service.Name)
		if err := d.run(); err != nil {
			return o.withForceHint(fmt.Errorf("cannot deploy %q: %w", c.Charm, err))
		}
		return d.addUnits()
	})
	if err != nil || bundlePath == "" {
		return err
	}
	c.Channel = ""
	c.Revision = 0 // of the bundle, not of its charms
	return c.deployBundle(o, bundlePath)
}

// prepareFromStore returns a deployment whose files were downloaded. It has been rehearsed before.
func (c deployCmd) prepareFromStore(
	o *operator,
	f *storeFinder,
	service state.Service,
	scratch string,
) (*deployment, error) {
	if err := f.describe(scratch); err != nil {
		return nil, err
	}
	d, err := c.prepare(o, f.found, service, nil)
	if err != nil {
		return nil, err
	}
	d.store = f.release
	d.channel = f.channel
	if err := d.rehearse(f.state); err != nil {
		return nil, err
	}

	if !f.release.kept {
		if d.found, err = f.downloadFound(scratch); err != nil {
			return nil, err
		}
	}
	d.files, err = f.getResources(scratch)
	return d, err
}

// downloadFound downloads the charm that was described.
func (f *storeFinder) downloadFound(scratch string) (charm.Found, error) {
	found, err := f.download(f.release, scratch)
	if err != nil {
		return found, err
	}

	found.Series = f.found.Series
	if found.Meta.Subordinate != f.found.Meta.Subordinate || found.Meta.Name != f.found.Meta.Name {
		return found, fmt.Errorf("the download is not the charm %q that the store describes", f.name)
	}
	return found, nil
}

// rehearse deploys without files, to find the errors of a deployment.
func (d *deployment) rehearse(s *state.State) error {
	return s.Rehearse(d.o.ctx, func(r *state.Rehearsal) error {
		try := *d
		try.o = d.o.silenced()
		try.state = r
		try.files = nil
		return try.run()
	})
}

// storeFinder finds a charm of the store, as an operator named it.
type storeFinder struct {
	*charmStore
	name     string
	channel  string
	revision int      // 0: the channel says it
	base     string   // a series or base; empty: that of machines
	words    []string // NAME=FILE and NAME=REVISION of resources

	wish    charmsource.Wish
	release *storeRelease
	found   charm.Found
	given   map[string]string // files of resources
	picked  map[string]int    // revisions of resources
}

// find finds the release. If the store is away, it takes a release that the environment has already.
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

	kept, err := f.findKept()
	if err != nil {
		return err
	}
	if kept != nil && f.revision > 0 {
		f.release = kept
		return nil
	}

	f.release, err = f.resolve(f.wish)
	if err != nil && kept != nil && errors.Is(err, charmsource.ErrAway) {
		f.o.note("warning: %v", err)
		f.o.note("using revision %d, which this model has", kept.Revision)
		f.release = kept
		err = nil
	}
	if err != nil {
		return err
	}

	f.noteBase(f.release, f.wish)
	return nil
}

// findKept returns the newest release of the charm that the environment has, of the wanted channel or
// revision; nil if there is none.
func (f *storeFinder) findKept() (*storeRelease, error) {
	all, err := state.Read(f.o.ctx, f.state, (*state.View).Charms)
	if err != nil {
		return nil, err
	}

	var best *state.Charm
	for i, c := range all {
		if c.Store == nil || c.Store.Name != f.name {
			continue
		}
		isWanted := c.Store.Revision == f.revision
		switch {
		case f.revision > 0:
			// The revision alone decides.
		case f.channel == charmsource.DefaultChannel:
			isWanted = c.Store.Default
		default:
			isWanted = c.Store.Channel != "" &&
				charmsource.WholeChannel(c.Store.Channel) == charmsource.WholeChannel(f.channel)
		}
		if isWanted && (best == nil || c.Store.Revision > best.Store.Revision) {
			best = &all[i]
		}
	}
	if best == nil {
		return nil, nil
	}
	kept := keptRelease(*best)
	if f.revision == 0 {
		kept.Channel = best.Store.Channel
	}
	return kept, nil
}

// keptRelease describes a charm that the environment has as the store would describe it: a release without a
// channel.
func keptRelease(c state.Charm) *storeRelease {
	var bases []charmsource.Base
	for _, text := range c.Store.Bases {
		base := parseBase(text)
		// The record of a charm has no architecture.
		base.Arch = constraints.HostArch()
		bases = append(bases, base)
	}

	what := fmt.Sprintf("charm %s, revision %d", c.Store.Name, c.Store.Revision)
	return &storeRelease{kept: true, Release: charmsource.Release{
		Type:     charmsource.TypeCharm,
		ID:       c.Store.ID,
		Name:     c.Store.Name,
		Revision: c.Store.Revision,
		Bases:    bases,
		File:     charmsource.File{What: what, Size: c.Size, SHA256: c.SHA256},
	}}
}

// describe reads the store's description of the charm before it is downloaded, and the charm's resources.
func (f *storeFinder) describe(scratch string) (err error) {
	if f.release.kept {
		f.found, err = f.download(f.release, scratch)
	} else {
		f.found, err = f.release.read()
	}
	if err != nil {
		return err
	}

	if base := f.release.Base; len(f.env.MachineSeries()) == 0 && base.Name != "" {
		f.found.Series = charm.SeriesOfBase(base.String())
	}
	if err := f.checkGiven(); err != nil {
		return err
	}
	return f.pickResources()
}

// pickResources asks the store for the revisions of resources that the user gave.
func (f *storeFinder) pickResources() error {
	if len(f.picked) == 0 {
		return nil
	}
	answers, err := f.source.Resolve(f.o.ctx, charmsource.Wish{
		Name:      f.name,
		Revision:  f.release.Revision,
		Arch:      f.wish.Arch,
		Resources: f.picked,
	})
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		return err
	}

	picked := answers[0].Release.Resources
	f.release.Resources = slices.DeleteFunc(f.release.Resources, func(old charmsource.Resource) bool {
		return slices.ContainsFunc(picked, func(r charmsource.Resource) bool { return r.Name == old.Name })
	})
	f.release.Resources = append(f.release.Resources, picked...)
	return nil
}

// checkGiven refuses resources that the charm does not have, and files that do not exist.
func (f *storeFinder) checkGiven() error {
	for _, name := range slices.Sorted(maps.Keys(f.picked)) {
		if _, err := f.found.Meta.ResourceFile(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.given)) {
		if _, err := f.found.Meta.ResourceFile(name); err != nil {
			return err
		}
		if err := checkResourceFile(f.given[name]); err != nil {
			return charm.Invalidf("cannot attach resource %q: %w", name, err)
		}
	}
	return nil
}

// splitResources separates NAME=FILE from NAME=REVISION. A number is always a revision.
func splitResources(words []string) (files map[string]string, revisions map[string]int, err error) {
	files, err = parsePairs(words)
	if err != nil {
		return nil, nil, err
	}

	revisions = map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		n, err := strconv.Atoi(files[name])
		if _, missing := os.Stat(files[name]); err == nil && n >= 0 && missing != nil {
			revisions[name] = n
			delete(files, name)
		}
	}
	return files, revisions, nil
}

// getResources returns the file of each resource: the given one, else the store's, which it downloads.
func (f *storeFinder) getResources(scratch string) (map[string]string, error) {
	files := maps.Clone(f.given)
	released, err := f.releasedResources()
	if err != nil {
		return nil, err
	}

	f.release.resources = map[string]int{}
	for _, resource := range released {
		name := resource.Name
		_, err := f.found.Meta.ResourceFile(name)
		if files[name] != "" || err != nil || resource.File.URL == "" {
			continue
		}
		if resource.File.Size > resources.MaxSize {
			return nil, fmt.Errorf("resource %q has %d MiB, at most %d", name, resource.File.Size>>20, resources.MaxSize>>20)
		}

		path := filepath.Join(scratch, "resource-"+name)
		if err := f.getFile(resource.File, path, true); err != nil {
			return nil, err
		}
		files[name] = path
		f.release.resources[name] = resource.Revision
	}
	return files, nil
}

// releasedResources returns the resources that belong to the release. A release that was found by its
// revision has none, so that those of the channel's release count.
func (f *storeFinder) releasedResources() ([]charmsource.Resource, error) {
	var lacking []string
	for name := range f.found.Meta.Resources {
		isThere := func(r charmsource.Resource) bool { return r.Name == name }
		if f.given[name] != "" || slices.ContainsFunc(f.release.Resources, isThere) {
			continue
		}
		if _, err := f.found.Meta.ResourceFile(name); err == nil {
			lacking = append(lacking, name)
		}
	}
	if len(lacking) == 0 || f.release.Channel != "" && !f.release.kept {
		return f.release.Resources, nil
	}

	w := f.wish
	w.Revision = 0
	answers, err := f.source.Resolve(f.o.ctx, w)
	if err == nil {
		err = answers[0].Err
	}
	if err != nil {
		f.o.note("warning: cannot find out which resources go with it: %v", err)
		return f.release.Resources, nil
	}

	all := slices.Clone(f.release.Resources)
	for _, r := range answers[0].Release.Resources {
		if slices.Contains(lacking, r.Name) {
			all = append(all, r)
		}
	}
	return all, nil
}
