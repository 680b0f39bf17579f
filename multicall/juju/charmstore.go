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

// charmStore is the store of charms, with the settings of an environment. It prefers files that the
// environment already has.
type charmStore struct {
	o     *operator
	state *state.State // nil if there is no environment
	env   state.Environment
	store charmsource.Store
}

var _ charmsource.Source = (*charmStore)(nil)

// openCharmStore returns the store of charms for the environment whose state is s.
func (o *operator) openCharmStore(s *state.State) (*charmStore, error) {
	env, err := state.Read(o.ctx, s, (*state.View).Environment)
	if err != nil {
		return nil, err
	}
	store, err := o.newCharmhub(env)
	if err != nil {
		return nil, err
	}
	return &charmStore{o: o, state: s, env: env, store: store}, nil
}

// askCharmStore calls f with the store of charms for the chosen environment or, if there is none, for this
// host. It returns an error if -e names an environment that does not exist.
func (o *operator) askCharmStore(f func(st *charmStore) error) error {
	// openChosen below returns any other error of Choose.
	_, err := o.home.Choose(o.name)
	if errors.Is(err, home.ErrNoEnvironment) && o.name == "" {
		store, err := o.newCharmhub(state.Environment{})
		if err != nil {
			return err
		}
		return f(&charmStore{o: o, store: store})
	}

	return o.openChosen(func(s *state.State) error {
		st, err := o.openCharmStore(s)
		if err != nil {
			return err
		}
		return f(st)
	})
}

// newCharmhub returns the client for the store of charms. BIJOU_CHARMHUB_URL and CHARMHUB_URL override the
// environment's URL of the store. If none of them is set, the store is Charmhub. newCharmhub returns a usage
// error for an invalid URL or proxy.
func (o *operator) newCharmhub(env state.Environment) (charmsource.Store, error) {
	store, err := charmsource.NewCharmhub(charmsource.Options{
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
	return store, nil
}

// Resolve implements [charmsource.Source].
func (st *charmStore) Resolve(ctx context.Context, wishes ...charmsource.Wish) ([]charmsource.Answer, error) {
	return st.store.Resolve(ctx, wishes...)
}

// Fetch implements [charmsource.Source] for charms. The environment keeps a copy of each charm, so that no
// charm is downloaded twice.
func (st *charmStore) Fetch(ctx context.Context, f charmsource.File, path string) (sha384 string, err error) {
	if err := st.getFile(ctx, f, path, packedFile); err != nil {
		return "", err
	}
	return osutil.DigestFile384(path)
}

// baseOfSeries returns the store's base for a series. The base has no name if the series has no version.
func baseOfSeries(series string) charmsource.Base {
	b := charm.BaseOfSeries(series)
	if i := strings.IndexAny(b.Name, "0123456789"); b.Version == "" && i > 0 {
		// For example, the series fedora40 is version 40 of fedora.
		b.Version = b.Name[i:]
		b.Name = b.Name[:i]
	}
	if b.Version == "" {
		return charmsource.Base{}
	}
	return charmsource.Base{Name: b.Name, Version: b.Version}
}

// parseBaseFlag parses the value of --base. It returns an empty base for an empty text, and a usage error for a
// series whose version bijou does not know, or for a base without a name or version.
func parseBaseFlag(text string) (charmsource.Base, error) {
	b := parseBase(text)
	if text != "" && (b.Name == "" || b.Version == "") {
		return b, console.Usage(fmt.Errorf("invalid --base %q: want NAME@VERSION, such as ubuntu@24.04, or a series", text))
	}
	return b, nil
}

// parseBase parses a base, such as ubuntu@24.04 or ubuntu@24.04/stable, or a series. It drops the risk after the
// version. For a series without a version, the result has no name.
func parseBase(text string) charmsource.Base {
	name, version, isBase := strings.Cut(text, "@")
	if !isBase {
		return baseOfSeries(text)
	}
	version, _, _ = strings.Cut(version, "/")
	return charmsource.Base{Name: name, Version: version}
}

// wishFor returns a wish for a charm of the service s that runs on machines of the series, which can also be a
// base. If series is empty, the wish prefers the first series that machines of the environment can have, and
// accepts the others. It then also accepts any other base if s or the environment allows other series, or if the
// first series has no base in the store. If machines can have any series, it prefers the environment's default
// series, and accepts any other base. The architecture is that of the service's or the environment's constraints,
// and otherwise this host's. The caller sets the charm's name, channel and revision.
func (st *charmStore) wishFor(s state.Service, series string) charmsource.Wish {
	arch := cmp.Or(s.Constraints.Over(st.env.Constraints).Hardware().Arch, constraints.HostArch())
	w := charmsource.Wish{Arch: arch}
	if series != "" {
		w.Base = parseBase(series)
		return w
	}

	possible := st.env.MachineSeries()
	if len(possible) == 0 {
		// Machines can have any series.
		w.Base = baseOfSeries(st.env.DefaultSeries)
		w.OrOther = true
		return w
	}

	w.Base = baseOfSeries(possible[0])
	for _, other := range possible[1:] {
		// A series without a version has no base in the store.
		if base := baseOfSeries(other); base.Name != "" {
			w.Also = append(w.Also, base)
		}
	}
	w.OrOther = s.ForceSeries || st.env.AllowsOtherSeries()
	return w
}

// resolve requests one release from the store. It returns a *state.SeriesError if only the wished base prevents a
// release.
func (st *charmStore) resolve(w charmsource.Wish) (*charmRelease, error) {
	answers, err := st.Resolve(st.o.ctx, w)
	if err != nil {
		return nil, err
	}
	return st.accept(w, answers[0])
}

// accept returns the release in the store's answer to the wish. It returns a *state.SeriesError if only the wished
// base prevents a release. If the store has no such charm or release, the error has a hint. It returns other errors of
// the answer unchanged, and an error if a charm's release is not for the wished architecture.
func (st *charmStore) accept(w charmsource.Wish, answer charmsource.Answer) (*charmRelease, error) {
	err := answer.Err
	if noRelease, ok := errors.AsType[*charmsource.NoReleaseError](err); ok {
		// Only with a wished base can a different base be the obstacle. A wish for a revision ignores the base.
		if w.Revision == 0 && w.Base.Name != "" && noRelease.HasOtherBase() {
			return nil, state.RefuseSeries(err)
		}
		return nil, console.Hint(err, "to see its channels: juju info "+quoteShellWords([]string{w.Name}))
	}
	if errors.Is(err, charmsource.ErrNotFound) {
		return nil, console.Hint(err,
			"juju find WORD searches the store; to deploy a directory, give its path, like ./"+w.Name)
	}
	if err != nil {
		return nil, err
	}

	r := &charmRelease{Release: answer.Release, source: st, asked: w.Channel}
	// A bundle runs on no machine of its own.
	if r.Type == charmsource.TypeCharm && !r.SupportsArch(w.Arch) {
		return nil, fmt.Errorf("revision %d of charm %q is not for %s", r.Revision, r.Name, w.Arch)
	}
	return r, nil
}

// noteBase prints a note if the wish w accepts bases that machines of the environment do not have, and the
// release is for such a base. If machines can have any series, or w prefers no base, it prints nothing.
func (st *charmStore) noteBase(r *charmRelease, w charmsource.Wish) {
	hasBases := r.Base.Name != "" && w.Base.Name != ""
	// Without OrOther, the wish accepts only bases of the environment's machines, or the one that was asked for.
	if !hasBases || !w.OrOther {
		return
	}

	isReleased := func(b charmsource.Base) bool { return b.String() == r.Base.String() }
	isWished := isReleased(w.Base) || slices.ContainsFunc(w.Also, isReleased)
	if len(st.env.MachineSeries()) > 0 && !isWished {
		st.o.note("using the release for %s, because there is no release for %s, the base of this model's machines", r.Base, w.Base)
	}
}

// fileKind is the kind of a file of the store. The kinds have different limits of size.
type fileKind int

const (
	packedFile   fileKind = iota // a charm or bundle
	resourceFile                 // the file of a resource, which can be larger
)

// getFile writes a file of the store to path. It uses the environment's copy if there is one. Otherwise it
// downloads the file, and stores a copy in the environment. A lock lets only one command on this host
// download at a time. Under this lock, getFile also removes downloads that a killed command has left.
func (st *charmStore) getFile(ctx context.Context, f charmsource.File, path string, kind fileKind) error {
	found, err := st.copyBlob(ctx, f, path)
	if err != nil {
		return err
	}
	if found {
		return nil
	}

	e, err := st.o.home.Choose(st.o.name)
	if err != nil {
		return err
	}

	folder := filepath.Join(e.Dir, "downloads")
	lock, err := osutil.LockDir(ctx, folder)
	if err != nil {
		return err
	}
	defer lock.Close()

	// Another command may have downloaded the file before this command got the lock.
	found, err = st.copyBlob(ctx, f, path)
	if err != nil {
		return err
	}
	if found {
		return nil
	}

	// No other command on this host is downloading, so a file here was left, as by a killed command.
	if err := removeFiles(folder); err != nil {
		return err
	}

	fetched := filepath.Join(folder, f.SHA256)
	if err := st.fetchFile(ctx, f, fetched, kind); err != nil {
		return err
	}
	defer os.Remove(fetched)

	if err := st.keepFile(ctx, fetched, kind); err != nil { // stores the copy in the environment
		return err
	}

	// copyBlob finds the copy, since keepFile has just stored it.
	_, err = st.copyBlob(ctx, f, path)
	return err
}

// removeFiles removes all files in the directory folder.
func removeFiles(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}

	for _, entry := range entries {
		if err := os.Remove(filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

// fetchFile downloads a file of the store to path. It returns an error if f.Size is above the limit for the file's
// kind.
func (st *charmStore) fetchFile(ctx context.Context, f charmsource.File, path string, kind fileKind) error {
	limit := int64(charm.MaxPacked)
	if kind == resourceFile {
		limit = resources.MaxSize
	}
	if f.Size > limit {
		return fmt.Errorf("cannot download %s: it is larger than the limit of %d MiB", f.What, limit>>20)
	}

	_, err := st.store.Fetch(ctx, f, path)
	return err
}

// keepFile stores a file as a blob. The blob stays for at least an hour, and for as long as a record of the
// environment refers to it.
func (st *charmStore) keepFile(ctx context.Context, path string, kind fileKind) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()

	// A resource can be larger than the limit of PutBlob, which reads the whole file into memory.
	if kind == resourceFile {
		_, _, err = st.state.PutFile(ctx, file)
	} else {
		_, _, err = st.state.PutBlob(ctx, file)
	}
	return err
}

// copyBlob writes the environment's copy of the store's file f to path. found is false if the environment has
// no copy.
func (st *charmStore) copyBlob(ctx context.Context, f charmsource.File, path string) (found bool, err error) {
	if f.SHA256 == "" {
		// getFile then calls the store's Fetch, which reports the missing checksum.
		return false, nil
	}
	err = st.state.DownloadBlob(ctx, f.SHA256, path, 0o600)
	if errors.Is(err, state.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, nil
}
