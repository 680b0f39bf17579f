package juju

import (
	"archive/zip"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/juju/bundle"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/resources"
)

// isFromStore reports whether a bundle's charm is one of the store's: a name that is not a path, where no repository is
// given to look it up in.
func (c deployCmd) isFromStore(name string) bool {
	own, isStore := strings.CutPrefix(name, "ch:")
	return charm.CheckName(own) == nil && (isStore || c.Repository == "")
}

// findStoreCharms finds the charms of the store that a bundle names, in one request. It downloads none.
func (c deployCmd) findStoreCharms(
	o *operator,
	s *state.State,
	b *bundle.Bundle,
	env bundle.Environment,
	scratch string,
) (map[string]bundle.Found, error) {
	found := map[string]bundle.Found{}
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

	answers, err := finders[names[0]].source.Resolve(o.ctx, wishes...)
	if err != nil {
		return found, err
	}
	var errs []error
	for i, name := range names {
		one, err := c.describeStoreCharm(finders[name], answers[i], b.Applications[name], env.Services[name], scratch)
		if err != nil {
			errs = append(errs, fmt.Errorf("application %q: %w", name, err))
		}
		found[name] = one
	}
	return found, errors.Join(errs...)
}

// newFinder returns the finder of an application's charm in the store. Its channel is the bundle's, else
// the one that the service follows.
func (c deployCmd) newFinder(
	o *operator,
	s *state.State,
	b *bundle.Bundle,
	a *bundle.Application,
	have bundle.Service,
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
	if a.Channel == "" && have.Origin.Store != "" && have.Origin.Name == name {
		channel = cmp.Or(have.Origin.Channel, channel)
	}

	f := &storeFinder{charmStore: st, name: name, channel: channel, given: maps.Clone(a.Resources), picked: a.Revisions}
	if f.given == nil {
		f.given = map[string]string{}
	}
	service := state.Service{ForceSeries: liftedBy(c.Force, c.ForceSeries).Series || have.ForceSeries}
	f.wish = f.wishFor(service, cmp.Or(a.Base, a.Series, b.Base, b.Series, have.Origin.Base))
	f.wish.Name = name
	f.wish.Channel = channel
	if a.Revision != nil {
		f.revision = *a.Revision
		f.wish.Revision = *a.Revision
	}
	return f, nil
}

// describeStoreCharm returns the charm and resources of an application from the store's answer. It does not
// download them.
func (c deployCmd) describeStoreCharm(
	f *storeFinder,
	answer charmsource.Answer,
	a *bundle.Application,
	have bundle.Service,
	scratch string,
) (found bundle.Found, err error) {
	if f.release, err = f.accept(f.wish, answer); err != nil {
		return found, err
	}
	if f.release.Type != charmsource.TypeCharm {
		return found, fmt.Errorf("%q is a bundle: a bundle can only have charms", f.name)
	}
	f.noteBase(f.release, f.wish)
	if err := f.describe(scratch); err != nil {
		return found, err
	}

	found = bundle.Found{Found: f.found, Origin: f.release.origin(f.channel, ""), Source: f}
	found.IsSame = have.Name != "" && have.Charm.Store.IsRevision(f.release.ID, f.release.Revision)
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

// changeFromStore does what change does, for an application whose resources may be revisions in the store.
func (e bundleExecutor) changeFromStore(f *storeFinder, step bundle.Step, files map[string]string) error {
	isPicked := func(name, _ string) bool { return f.picked[name] > 0 }
	if _, isRehearsal := e.state.(*state.Rehearsal); isRehearsal {
		maps.DeleteFunc(files, isPicked)
		return e.change(step, files, nil)
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	got, err := f.getResources(scratch)
	if err != nil {
		return err
	}
	for name := range files {
		files[name] = got[name]
	}
	return e.change(step, files, f.release)
}

// deployFromStore downloads an application's charm and deploys it. In a rehearsal it downloads nothing.
func (e bundleExecutor) deployFromStore(f *storeFinder, service state.Service, step bundle.Step) error {
	d := deployment{
		o:       e.o,
		state:   e.state,
		found:   f.found,
		service: service,
		config:  step.Options,
		series:  step.Series,
		store:   f.release,
		channel: f.channel,
	}
	if _, isRehearsal := e.state.(*state.Rehearsal); isRehearsal {
		return d.run()
	}

	scratch, err := os.MkdirTemp("", "bijou-charm-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	if d.found, err = f.downloadFound(scratch); err != nil {
		return err
	}
	if d.files, err = f.getResources(scratch); err != nil {
		return err
	}
	return d.run()
}

// downloadBundle downloads a bundle of the store, and returns the path of its file.
func (st *charmStore) downloadBundle(r *storeRelease, scratch string) (path string, err error) {
	if r.File.Size > charm.MaxPacked {
		return "", fmt.Errorf("it has %d MiB, at most %d", r.File.Size>>20, charm.MaxPacked>>20)
	}
	archive := filepath.Join(scratch, "bundle.zip")
	if err := st.getFile(r.File, archive, false); err != nil {
		return "", err
	}

	opened, err := zip.OpenReader(archive)
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer opened.Close()
	file, err := opened.Open("bundle.yaml")
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, charm.MaxYAML+1))
	if err == nil && len(data) > charm.MaxYAML {
		err = fmt.Errorf("bundle.yaml has more than %d bytes", charm.MaxYAML)
	}
	if err != nil {
		return "", fmt.Errorf("cannot read the bundle: %w", err)
	}

	path = filepath.Join(scratch, "bundle.yaml")
	return path, os.WriteFile(path, data, 0o600)
}
