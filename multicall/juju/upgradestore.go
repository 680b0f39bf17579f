package juju

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/charmsource"
	"bijou/state/resources"
)

// storeName returns the store's name of the charm that the service will run. If isStore is false, the charm does not
// come from the store, and the name must be ignored. storeName returns an error if it is unclear whether --switch
// names a charm of the store, or if the name after ch: is invalid.
func (u *upgrade) storeName() (name string, isStore bool, err error) {
	if u.cmd.Switch != "" {
		verb := "refresh " + u.service.Name + " --switch"
		return charmSource{name: u.cmd.Switch, repository: u.cmd.Repository}.storeName(verb)
	}

	// With --repository, the charm comes from that directory. JUJU_REPOSITORY also sets u.cmd.Repository, but does
	// not count here, since it is for charms that came from a directory.
	isRepositoryFlag := func(word string) bool { return strings.HasPrefix(word, "--repository") }
	wantsRepository := slices.ContainsFunc(u.o.args, isRepositoryFlag)
	origin := u.service.Origin
	return origin.Name, origin.Store != "" && !wantsRepository, nil
}

// findStoreTarget finds the revision that the command names, or the newest release in the channel that the
// service will follow. It does not query the store for a revision of the service's own charm that the environment
// already has. For any other release that the service does not run yet, it also does the work of downloadTarget.
// name is the charm's name in the store.
func (u *upgrade) findStoreTarget(name, scratch string) (upgradeTarget, error) {
	channel, err := u.channel()
	if err != nil {
		return upgradeTarget{}, err
	}
	revision := u.cmd.Revision
	if revision != nil && *revision < 1 {
		return upgradeTarget{}, console.Usage(fmt.Errorf("invalid --revision %d: want a number from 1", *revision))
	}

	if revision != nil && u.cmd.Switch == "" {
		// The environment may already have this revision of the service's charm.
		kept, err := state.Read(u.o.ctx, u.state, func(v *state.View) (state.Charm, error) {
			return v.StoreCharm(u.service.Origin.ID, *revision)
		})
		if err == nil {
			return upgradeTarget{url: kept.URL, origin: keptRelease(kept).origin(channel, u.service.Series)}, nil
		}
		if state.IgnoreNotFound(err) != nil {
			return upgradeTarget{}, err
		}
	}

	st, err := u.o.openCharmStore(u.base)
	if err != nil {
		return upgradeTarget{}, err
	}

	f := &storeFinder{charmStore: st, name: name, channel: channel}
	// For a resource, the command can name a file or a revision in the store.
	f.given, f.picked, err = splitResources(u.cmd.Resource)
	if err != nil {
		return upgradeTarget{}, err
	}
	f.wish = u.wish(st, name, channel)
	f.release, err = st.resolve(f.wish)
	if err != nil {
		return upgradeTarget{}, err
	}

	t := upgradeTarget{
		url:    charm.URL{Series: u.current.URL.Series, Name: u.current.URL.Name, Revision: f.release.Revision},
		origin: f.release.origin(channel, u.service.Series),
	}
	// If the channel has no track, the service follows the track of the store's answer.
	t.origin.Channel = followedChannel(channel, f.release.Channel)
	if u.current.Store.IsRevision(f.release.ID, f.release.Revision) {
		// The service already runs this release.
		t.url = u.current.URL
		return t, nil
	}
	return u.downloadTarget(t, f, scratch)
}

// followedChannel returns the channel that a service follows after the request for a release. asked is the
// requested channel. effective is the channel in the store's answer, or "". If asked has no track, the
// service follows the track of effective. It always follows the risk of asked. The risk of effective differs
// from it if asked has no release yet.
func followedChannel(asked, effective string) string {
	hasTrack := charmsource.WholeChannel(asked) == asked
	if effective == "" || hasTrack {
		return asked
	}

	wholeEffective := charmsource.WholeChannel(effective)
	if charmsource.WholeChannel(asked) == wholeEffective {
		// Both are the same channel. The service follows it in the store's spelling.
		return effective
	}

	track, _, _ := strings.Cut(wholeEffective, "/")
	return track + "/" + asked
}

// channel returns the channel to request: the channel of --channel or, without that flag, the channel that the
// service follows.
func (u *upgrade) channel() (string, error) {
	followed := u.service.Origin.Channel
	if u.cmd.Switch != "" {
		// A different charm does not follow the channel of the current charm.
		followed = ""
	}
	channel, err := charmsource.ParseChannelFrom(followed, u.cmd.Channel)
	if err != nil {
		return "", console.Usage(err)
	}
	return channel, nil
}

// wish returns the wish with which to query the store for the new release. Unless the command switches to a
// different charm, the wish is for the base of the service's charm, if that base is recorded.
func (u *upgrade) wish(st *charmStore, name, channel string) charmsource.Wish {
	s := u.service
	// --force and --force-series also count for the wish. s is a copy, so the service itself does not change.
	s.ForceSeries = s.ForceSeries || liftedBy(u.cmd.Force, u.cmd.ForceSeries).Series
	// Without a series, the wish is for any series that machines of the environment can have.
	w := st.wishFor(s, "")
	if u.cmd.Switch == "" && s.Origin.Base != "" {
		// The bases of the environment's machines no longer count. The wish accepts other bases if the charm can
		// run on a series that it does not support.
		w.Base = parseBase(s.Origin.Base)
		w.Also = nil
		w.OrOther = s.ForceSeries || st.env.AllowsOtherSeries()
	}

	w.Name = name
	w.Channel = channel
	switch {
	case u.cmd.Revision != nil:
		w.Revision = *u.cmd.Revision
	case u.cmd.Switch == "" && u.cmd.Channel == "":
		// The service asks for a newer release of its own charm.
		w.ID = s.Origin.ID
		w.Have = s.Origin.Revision
	}
	return w
}

// downloadTarget rehearses the upgrade, and then downloads the charm, so that it downloads no charm that the
// upgrade would refuse. If the upgrade is a rehearsal itself, it only reads the charm's description. It returns
// the target t, with the release that f has found, and with f.
func (u *upgrade) downloadTarget(t upgradeTarget, f *storeFinder, scratch string) (upgradeTarget, error) {
	if err := f.describe(scratch); err != nil {
		return t, err
	}
	t.release = f.release
	t.store = f
	// The name in the charm's metadata counts, which can differ from the name of the current charm.
	t.url.Name = f.release.found.Meta.Name
	if _, isRehearsal := u.state.(*state.Rehearsal); isRehearsal {
		return t, nil
	}

	// The rehearsal uses a copy of the upgrade, and prints nothing.
	rehearsed := *u
	rehearsed.o = u.o.silenced()
	rehearsed.target = t
	err := u.base.Rehearse(u.o.ctx, func(r *state.Rehearsal) error {
		rehearsed.state = r
		return rehearsed.run()
	})
	if err != nil {
		return t, rehearsedError{err}
	}

	return t, f.download(scratch)
}

// rehearsedError is an error of the rehearsal. The upgrade itself would return the same error.
type rehearsedError struct{ error }

func (e rehearsedError) Unwrap() error { return e.error }

// fetchResources returns the files of resources for the upgrade, by the resource's name. It returns the files
// that the command names. For a new release from the store, it also downloads the other resources of the
// release. It leaves out a resource that an operator has attached before, since the service keeps it, unless the
// command names a file or revision for the resource. In a rehearsal it downloads nothing.
func (u *upgrade) fetchResources(meta *charm.Meta, scratch string) (map[string]string, error) {
	f := u.target.store
	if f == nil {
		// The charm is not a new release from the store.
		return parseResourceFiles(meta, u.cmd.Resource)
	}
	if _, isRehearsal := u.state.(*state.Rehearsal); isRehearsal {
		return f.given, nil
	}

	attached, err := state.Read(u.o.ctx, u.state, func(v *state.View) ([]resources.Resource, error) {
		return resources.List(v, u.service.Name)
	})
	if err != nil {
		return nil, err
	}

	// A resource with an entry in f.given is not downloaded. f.picked has the revisions that the command names.
	// Revision 0 means that an operator has attached the file.
	for _, r := range attached {
		_, isPicked := f.picked[r.Name]
		if r.Revision == 0 && !isPicked && f.given[r.Name] == "" {
			f.given[r.Name] = keptResource
		}
	}

	files, err := f.getResources(scratch)
	if err != nil {
		return nil, err
	}

	// getResources has also returned the entries of kept resources.
	maps.DeleteFunc(files, func(_, path string) bool { return path == keptResource })
	return files, nil
}

// keptResource stands for the path of a file that the service already has.
const keptResource = "-"
