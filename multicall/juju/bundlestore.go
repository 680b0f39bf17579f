package juju

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/constraints"
	"bijou/state/resources"
)

// isFromStore reports whether a bundle's charm comes from the store: it is written as ch:NAME, or as NAME if
// there is no repository.
func (c deployCmd) isFromStore(name string) bool {
	own, isStore := strings.CutPrefix(name, "ch:")
	return charm.CheckName(own) == nil && (isStore || c.Repository == "")
}

// findStoreCharms finds the store's charms that a bundle names, in one request. It downloads no charms. It
// returns the charms by the names of their applications. found is never nil, even with an error.
func (c deployCmd) findStoreCharms(
	o *operator,
	s *state.State,
	b *bundle.Bundle,
	env bundle.Environment,
	scratch string,
) (found map[string]bundle.Found, err error) {
	found = map[string]bundle.Found{}
	finders := map[string]*storeFinder{}
	var names []string
	var wishes []charmsource.Wish
	for _, name := range slices.Sorted(maps.Keys(b.Applications)) {
		a := b.Applications[name]
		if !c.isFromStore(a.Charm) {
			continue
		}
		f, err := c.newFinder(o, s, b, a, env.Services[name])
		if err != nil {
			return found, fmt.Errorf("application %q: %w", name, err)
		}

		finders[name] = f
		names = append(names, name)
		wishes = append(wishes, f.wish)
	}
	if len(names) == 0 {
		return found, nil
	}

	// All finders ask the same store.
	answers, err := finders[names[0]].Resolve(o.ctx, wishes...)
	if err != nil {
		return found, err
	}

	// Errors of several applications are returned together.
	var errs []error
	for i, name := range names {
		described, err := c.describeStoreCharm(finders[name], answers[i], b.Applications[name], env.Services[name], scratch)
		if err != nil {
			errs = append(errs, fmt.Errorf("application %q: %w", name, err))
		}
		found[name] = described // incomplete after an error
	}
	return found, errors.Join(errs...)
}

// newFinder returns the finder for an application's charm in the store. deployed is the existing service, or
// the zero value. If the bundle gives no channel, and the service has the same charm, the finder uses the
// channel that the service follows.
func (c deployCmd) newFinder(
	o *operator,
	s *state.State,
	b *bundle.Bundle,
	a *bundle.Application,
	deployed bundle.Service,
) (*storeFinder, error) {
	st, err := o.openCharmStore(s)
	if err != nil {
		return nil, err
	}

	name := strings.TrimPrefix(a.Charm, "ch:")
	channel, err := charmsource.ParseChannel(a.Channel)
	if err != nil {
		return nil, err
	}
	hasSameCharm := deployed.Origin.Store != "" && deployed.Origin.Name == name
	if a.Channel == "" && hasSameCharm {
		channel = cmp.Or(deployed.Origin.Channel, channel)
	}

	f := &storeFinder{charmStore: st, name: name, channel: channel, given: maps.Clone(a.Resources), picked: a.Revisions}
	// getResources adds files to a clone of this map.
	if f.given == nil {
		f.given = map[string]string{}
	}

	acceptsOtherSeries := liftedBy(c.Force, c.ForceSeries).Series || deployed.ForceSeries
	// The bundle's constraints replace those of the existing service, and determine the wish's architecture.
	service := state.Service{ForceSeries: acceptsOtherSeries, Constraints: deployed.Constraints}
	if a.Constraints != nil {
		if service.Constraints, err = constraints.Parse(*a.Constraints); err != nil {
			return nil, err
		}
	}
	// The application's own base or series comes first, then the bundle's, and then the existing service's base.
	base := cmp.Or(a.Base, a.Series, b.Base, b.Series, deployed.Origin.Base)
	f.wish = f.wishFor(service, base)
	f.wish.Name = name
	f.wish.Channel = channel

	if a.Revision != nil && *a.Revision < 1 {
		return nil, fmt.Errorf("invalid revision %d: want a number from 1", *a.Revision)
	}
	if a.Revision != nil {
		f.revision = *a.Revision
		f.wish.Revision = *a.Revision
	}
	return f, nil
}

// describeStoreCharm returns the charm and resources of an application from the store's answer, and sets
// f.release. It returns an error for a bundle. It does not download the charm or the resources. deployed is the
// existing service, or the zero value.
func (c deployCmd) describeStoreCharm(
	f *storeFinder,
	answer charmsource.Answer,
	a *bundle.Application,
	deployed bundle.Service,
	scratch string,
) (found bundle.Found, err error) {
	if f.release, err = f.accept(f.wish, answer); err != nil {
		return found, err
	}
	if f.release.Type != charmsource.TypeCharm {
		return found, fmt.Errorf("%q is a bundle: a bundle can contain only charms", f.name)
	}

	f.noteBase(f.release, f.wish)
	if err := f.describe(scratch); err != nil { // sets f.release.found and f.release.Resources
		return found, err
	}

	found = bundle.Found{Found: f.release.found, Origin: f.release.origin(f.channel, ""), Source: f}
	found.IsSame = deployed.Name != "" && deployed.Charm.Store.IsRevision(f.release.ID, f.release.Revision)

	// The bundle gives each resource as a file on this host, or as a revision in the store.
	if found.Resources, err = sumResources(a); err != nil {
		return found, err
	}
	for _, r := range f.release.Resources {
		if _, isPicked := f.picked[r.Name]; isPicked {
			found.Resources[r.Name] = resources.Resource{SHA256: r.File.SHA256}
		}
	}
	return found, nil
}

// changeFromStore executes a step as [bundleExecutor.change] does, for an application whose resources may be
// revisions in the store. files are the files of the step's resources, by name. For a revision in the store,
// changeFromStore downloads the file, and sets its path in files. In a rehearsal it removes these resources from
// files, and downloads nothing.
func (e bundleExecutor) changeFromStore(f *storeFinder, step bundle.Step, files map[string]string) error {
	if _, isRehearsal := e.state.(*state.Rehearsal); isRehearsal {
		maps.DeleteFunc(files, func(name, _ string) bool {
			_, isInStore := f.picked[name]
			return isInStore
		})
		// All remaining files are the bundle's, so change needs no release.
		return e.change(step, files, nil)
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	// The result contains the given files and the downloaded files, by the names of the resources.
	resourceFiles, err := f.getResources(scratch)
	if err != nil {
		return err
	}
	for name := range files {
		files[name] = resourceFiles[name]
	}
	return e.change(step, files, f.release)
}

// deployFromStore downloads an application's charm and resources, and deploys it. In a rehearsal it downloads
// nothing.
func (e bundleExecutor) deployFromStore(f *storeFinder, d deployment) error {
	d.release = f.release
	d.channel = f.channel
	// A rehearsal needs only the store's description of the charm, and no files of resources.
	if _, isRehearsal := e.state.(*state.Rehearsal); isRehearsal {
		return d.run()
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)

	if err := f.download(scratch); err != nil {
		return err
	}
	if d.files, err = f.getResources(scratch); err != nil {
		return err
	}
	return d.run()
}

// downloadBundle downloads a bundle from the store, and returns the path of its bundle.yaml below scratch.
func (st *charmStore) downloadBundle(r *charmRelease, scratch string) (path string, err error) {
	if r.File.Size > charm.MaxPacked {
		return "", fmt.Errorf("the file is larger than the limit of %d MiB", charm.MaxPacked>>20)
	}
	archive := filepath.Join(scratch, "bundle.zip")
	if err := st.getFile(st.o.ctx, r.File, archive, packedFile); err != nil {
		return "", err
	}

	data, err := charm.ReadPackedFile(archive, "bundle.yaml")
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}

	path = filepath.Join(scratch, "bundle.yaml")
	return path, os.WriteFile(path, data, 0o600)
}
