package juju

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/constraints"
	"bijou/state/osutil"
	"bijou/state/resources"
)

// charmStore is the store of charms as an environment asks it, and what the environment has of it.
type charmStore struct {
	o      *operator
	state  *state.State // nil: there is no environment
	env    state.Environment
	source charmsource.Source
}

// openCharmStore opens the store that the environment names.
func (o *operator) openCharmStore(s *state.State) (*charmStore, error) {
	env, err := state.Read(o.ctx, s, (*state.View).Environment)
	if err != nil {
		return nil, err
	}
	source, err := o.newCharmSource(env)
	return &charmStore{o: o, state: s, env: env, source: source}, err
}

// askCharmStore calls f with the store of the chosen environment, or if there is none, of this host.
func (o *operator) askCharmStore(f func(st *charmStore) error) error {
	_, err := o.home.Choose(o.name)
	if errors.Is(err, home.ErrNoEnvironment) && o.name == "" {
		source, err := o.newCharmSource(state.Environment{})
		if err != nil {
			return err
		}
		return f(&charmStore{o: o, source: source})
	}

	return o.openChosen(func(s *state.State) error {
		st, err := o.openCharmStore(s)
		if err != nil {
			return err
		}
		return f(st)
	})
}

// newCharmSource returns the client of the store of charms. Variables of the process come before the
// environment's settings.
func (o *operator) newCharmSource(env state.Environment) (charmsource.Source, error) {
	source, err := charmsource.NewCharmhub(charmsource.Options{
		URL:     cmp.Or(os.Getenv("BIJOU_CHARMHUB_URL"), os.Getenv("CHARMHUB_URL"), env.Config[state.CharmhubURL]),
		Version: o.parts.Version,
		Proxy: charmsource.Proxy{
			HTTP:  env.Config[state.CharmHTTPProxy],
			HTTPS: env.Config[state.CharmHTTPSProxy],
			None:  env.Config[state.CharmNoProxy],
		},
		Notify:   func(text string) { o.note("%s", text) },
		Progress: func(what string, done, total int) { o.reportSteps(state.Steps{What: what, Done: done, Total: total}) },
	})
	if err != nil {
		return nil, console.Usage(err)
	}
	return source, nil
}

// storeRelease is a release of a charm that is to be stored.
type storeRelease struct {
	charmsource.Release
	asked     string         // the channel that the store was asked for
	kept      bool           // it is of the environment, which the store was not asked about
	archive   string         // where it was downloaded to; empty: it is not yet
	sha384    string         // of the archive
	resources map[string]int // revisions of the resources that were downloaded, by name
}

// origin returns the origin to record for a service whose charm follows the channel.
func (r storeRelease) origin(channel, series string) state.Origin {
	base := r.Base
	if base.Name == "" {
		base = r.baseFor(series)
	}

	return state.Origin{
		Name:     r.Name,
		Store:    state.StoreCharmhub,
		ID:       r.ID,
		Revision: r.Revision,
		Channel:  cmp.Or(r.Channel, channel),
		Base:     formatBase(base),
	}
}

func formatBase(b charmsource.Base) string {
	if b.Name == "" {
		return ""
	}
	return b.String()
}

// baseFor returns the base of the release that machines of the series run.
func (r storeRelease) baseFor(series string) charmsource.Base {
	own := baseOfSeries(series)
	isOwn := func(b charmsource.Base) bool { return b.String() == own.String() }
	if len(r.Bases) == 0 || slices.ContainsFunc(r.Bases, isOwn) {
		return own
	}
	chosen, _ := charmsource.ChooseBase(r.Bases, r.Bases[0].Arch)
	return chosen
}

// put stores the charm as the bytes that were downloaded. A rehearsal runs before the download, and assumes
// that the bytes are there.
func (r *storeRelease) put(o *operator, s state.Writer, c *charm.Charm, url charm.URL) (state.Charm, error) {
	sum := r.File.SHA256
	size := r.File.Size
	rehearsal, isRehearsal := s.(*state.Rehearsal)
	if isRehearsal {
		rehearsal.AssumeBlob(sum)
	} else {
		var err error
		if sum, size, err = putFile(o.ctx, s, r.archive); err != nil {
			return state.Charm{}, err
		}
	}

	record := state.NewCharm(url, c, sum, size)
	record.Store = &state.StoreCharm{
		Store:    state.StoreCharmhub,
		ID:       r.ID,
		Name:     r.Name,
		Revision: r.Revision,
		Channel:  r.Channel,
		Default:  r.Channel != "" && r.asked == charmsource.DefaultChannel,
		SHA384:   r.sha384,
	}
	for _, b := range r.Bases {
		record.Store.Bases = append(record.Store.Bases, b.String())
	}
	slices.Sort(record.Store.Bases)
	record.Store.Bases = slices.Compact(record.Store.Bases)
	return record, nil
}

func putFile(ctx context.Context, s state.Writer, path string) (sum string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	return s.PutBlob(ctx, file)
}

// mark notes the revisions of resources that the store has given; nil has none.
func (r *storeRelease) mark(given []resources.Resource) {
	for i, resource := range given {
		if r == nil || r.resources[resource.Name] == 0 {
			continue
		}
		given[i].Origin, given[i].Revision = state.StoreCharmhub, r.resources[resource.Name]
	}
}

// baseOfSeries returns the store's base for a series. The base has no name if the series has no version.
func baseOfSeries(series string) charmsource.Base {
	b := charm.BaseOfSeries(series)
	if i := strings.IndexAny(b.Name, "0123456789"); b.Version == "" && i > 0 {
		b.Name, b.Version = b.Name[:i], b.Name[i:] // fedora40
	}
	if b.Version == "" {
		return charmsource.Base{}
	}
	return charmsource.Base{Name: b.Name, Version: b.Version}
}

// parseBase reads a base or a series.
func parseBase(text string) charmsource.Base {
	name, version, isBase := strings.Cut(text, "@")
	if !isBase {
		return baseOfSeries(text)
	}
	version, _, _ = strings.Cut(version, "/")
	return charmsource.Base{Name: name, Version: version}
}

// wishFor returns a wish for a charm that runs on machines of that series; empty for the series that the
// environment's machines have. If the service accepts all series, the wish accepts other bases.
func (st *charmStore) wishFor(s state.Service, series string) charmsource.Wish {
	arch := cmp.Or(s.Constraints.Over(st.env.Constraints).Hardware().Arch, constraints.HostArch())
	w := charmsource.Wish{Arch: arch}
	if series != "" {
		w.Base = parseBase(series)
		return w
	}

	has := st.env.MachineSeries()
	if len(has) == 0 {
		w.Base = baseOfSeries(st.env.DefaultSeries)
		w.OrOther = true
		return w
	}
	w.Base = baseOfSeries(has[0])
	for _, other := range has[1:] {
		if base := baseOfSeries(other); base.Name != "" {
			w.Also = append(w.Also, base)
		}
	}
	w.OrOther = s.ForceSeries || st.env.AllowsOtherSeries()
	return w
}

// resolve asks the store for one release. A *state.SeriesError says that there are releases for other machines.
func (st *charmStore) resolve(w charmsource.Wish) (*storeRelease, error) {
	answers, err := st.source.Resolve(st.o.ctx, w)
	if err != nil {
		return nil, err
	}
	return st.accept(w, answers[0])
}

// accept returns an error if the machines of the wish cannot run the release.
func (st *charmStore) accept(w charmsource.Wish, answer charmsource.Answer) (*storeRelease, error) {
	err := answer.Err
	none, ok := errors.AsType[*charmsource.NoReleaseError](err)
	if ok && w.Revision == 0 && w.Base.Name != "" && none.HasOtherBase() {
		return nil, state.RefuseSeries(err)
	}
	if ok {
		return nil, console.Hint(err, "to see its channels: juju info "+quoteShellWords([]string{w.Name}))
	}
	if err != nil {
		if errors.Is(err, charmsource.ErrNotFound) {
			err = console.Hint(err, "juju find WORD searches the store; to deploy a directory, give its path, like ./"+w.Name)
		}
		return nil, err
	}

	r := &storeRelease{Release: answer.Release, asked: w.Channel}
	if r.Type == charmsource.TypeCharm && !r.SupportsArch(w.Arch) {
		return nil, fmt.Errorf("revision %d of charm %q is not for %s", r.Revision, r.Name, w.Arch)
	}
	return r, nil
}

// noteBase prints the base that was taken if the wish was for a different one.
func (st *charmStore) noteBase(r *storeRelease, w charmsource.Wish) {
	if r.Base.Name == "" || w.Base.Name == "" || r.Base.String() == w.Base.String() || !w.OrOther {
		return
	}
	isTaken := func(b charmsource.Base) bool { return b.String() == r.Base.String() }
	if len(st.env.MachineSeries()) > 0 && !slices.ContainsFunc(w.Also, isTaken) {
		st.o.note("using the release for %s: there is none for %s, which this model's machines have", r.Base, w.Base)
	}
}

// read returns the charm as the store describes it, without downloading it.
func (r *storeRelease) read() (charm.Found, error) {
	if r.File.Size > charm.MaxPacked {
		return charm.Found{}, fmt.Errorf("revision %d of charm %q has %d MiB, at most %d MiB can be kept",
			r.Revision, r.Name, r.File.Size>>20, charm.MaxPacked>>20)
	}

	parts := map[string]string{"metadata.yaml": r.Metadata}
	for name, text := range map[string]string{"config.yaml": r.Config, "actions.yaml": r.Actions} {
		if strings.TrimSpace(text) != "" && strings.TrimSpace(text) != "{}" {
			parts[name] = text
		}
	}
	if len(r.Bases) > 0 {
		parts["manifest.yaml"] = r.manifest()
	}

	c, err := charm.ReadParts(parts)
	if err != nil {
		return charm.Found{}, err
	}
	if err := r.checkResources(c.Meta); err != nil {
		return charm.Found{}, err
	}
	c.Revision = r.Revision
	return charm.Found{Charm: c}, nil
}

// manifest returns the bases in the format of a packed charm, the wished base first.
func (r *storeRelease) manifest() string {
	bases := slices.Clone(r.Bases)
	slices.SortStableFunc(bases, func(a, b charmsource.Base) int {
		isFirst := func(b charmsource.Base) int {
			if b.String() == r.Base.String() {
				return 0
			}
			return 1
		}
		return isFirst(a) - isFirst(b)
	})

	var text strings.Builder
	text.WriteString("bases:\n")
	for _, b := range bases {
		fmt.Fprintf(&text, "- name: %q\n  channel: %q\n  architectures: [%q]\n", b.Name, b.Version, b.Arch)
	}
	return text.String()
}

// checkResources refuses images, which are for Kubernetes.
func (r *storeRelease) checkResources(meta *charm.Meta) error {
	for name, resource := range meta.Resources {
		if resource.Type == "oci-image" {
			return fmt.Errorf("the charm is for Kubernetes (resource %q is an image): bijou runs charms on machines", name)
		}
	}
	return nil
}

// download gets the archive from the environment or, if that lacks it, from the store. It unpacks the
// archive below scratch.
func (st *charmStore) download(r *storeRelease, scratch string) (charm.Found, error) {
	archive := filepath.Join(scratch, "store.charm")
	if err := st.getFile(r.File, archive, false); err != nil {
		return charm.Found{}, err
	}
	sha384, err := osutil.DigestFile384(archive)
	if err != nil {
		return charm.Found{}, err
	}

	dir := filepath.Join(scratch, "store")
	source := charmSource{name: r.Name, tools: st.o.parts.HookTools}
	read, err := source.unpack(archive, dir)
	if err != nil {
		return charm.Found{}, err
	}

	r.archive = archive
	r.sha384 = sha384
	read.Revision = r.Revision
	return charm.Found{Charm: read, Path: dir}, nil
}

// getFile puts a file of the store at path. It uses the environment's copy if there is one; otherwise it
// downloads the file and gives the environment a copy. Only one command of this host downloads at a time.
// It removes downloads that a killed command has left.
func (st *charmStore) getFile(f charmsource.File, path string, isResource bool) error {
	if found, err := st.copyBlob(f, path); found || err != nil {
		return err
	}

	e, err := st.o.home.Choose(st.o.name)
	if err != nil {
		return err
	}
	folder := filepath.Join(e.Dir, "downloads")
	lock, err := osutil.LockDir(st.o.ctx, folder)
	if err != nil {
		return err
	}
	defer lock.Close()

	if found, err := st.copyBlob(f, path); found || err != nil {
		return err
	}
	left, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range left {
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}

	fetched := filepath.Join(folder, f.SHA256)
	if _, err := st.source.Fetch(st.o.ctx, f, fetched); err != nil {
		return err
	}
	defer os.Remove(fetched)
	if err := st.keepFile(fetched, isResource); err != nil {
		return err
	}

	_, err = st.copyBlob(f, path)
	return err
}

// keepFile stores a file as a blob. The blob stays for an hour, and longer if something refers to it by
// then.
func (st *charmStore) keepFile(path string, isResource bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	if isResource {
		_, _, err = st.state.PutFile(st.o.ctx, file)
	} else {
		_, _, err = st.state.PutBlob(st.o.ctx, file)
	}
	return err
}

// copyBlob copies a file of that sum from the environment's own blobs, so that it need not be downloaded.
// found is false if the environment does not have it.
func (st *charmStore) copyBlob(f charmsource.File, path string) (found bool, err error) {
	if f.SHA256 == "" {
		return false, nil // Fetch says so
	}
	err = st.state.DownloadBlob(st.o.ctx, f.SHA256, path, 0o600)
	if errors.Is(err, state.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}
