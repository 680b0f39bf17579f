package juju

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"bijou/state"
	"bijou/state/charm"
)

// findTarget finds the charm to switch to, a revision that the environment has, or the
// greatest revision where the charm came from.
func (u *upgrade) findTarget(c upgradeCharmCmd, scratch string) (upgradeTarget, error) {
	if c.Revision != nil {
		url := charm.URL{Series: u.current.URL.Series, Name: u.current.URL.Name, Revision: *c.Revision}
		stored, err := u.isStored(url)
		if stored || err != nil {
			return upgradeTarget{url: url, origin: u.service.Origin}, err
		}
	}
	found, origin, err := u.findCharm(c, scratch)
	if err != nil {
		return upgradeTarget{}, err
	}
	url := charm.URL{Series: u.current.URL.Series, Name: found.Meta.Name, Revision: found.Revision}
	t := upgradeTarget{url: url, origin: origin, found: found}
	switch {
	case c.Revision != nil && found.Revision != *c.Revision:
		return t, fmt.Errorf("%s has revision %d of charm %q, and the environment has no revision %d", found.Path, found.Revision, found.Meta.Name, *c.Revision)
	case c.Revision != nil, url.Name != u.current.URL.Name, url.Revision > u.current.URL.Revision:
		return t, nil
	}
	return u.bumpRevision(t)
}

func (u *upgrade) isStored(url charm.URL) (stored bool, err error) {
	err = u.state.View(u.o.ctx, func(v *state.View) error {
		_, err := v.Charm(url.String())
		stored = err == nil
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		return err
	})
	return stored, err
}

func (u *upgrade) findCharm(c upgradeCharmCmd, scratch string) (charm.Found, state.Origin, error) {
	tools := u.o.parts.HookTools
	origin := u.service.Origin
	repository := c.Repository
	switch {
	case c.Switch != "":
		return charmSource{c.Switch, repository, u.lookupSeries(), tools}.find(scratch)
	case repository == "" && origin.Repository == "":
		found, _, err := charmSource{origin.Path, "", "", tools}.find(scratch)
		return found, origin, err
	case repository == "":
		repository = origin.Repository
	}
	dir, err := filepath.Abs(repository)
	if err != nil {
		return charm.Found{}, state.Origin{}, fmt.Errorf("cannot find the repository %q: %w", repository, err)
	}
	ref := charm.Ref{Series: cmp.Or(origin.Series, u.lookupSeries()), Name: u.current.Meta.Name, Revision: -1}
	if c.Revision != nil {
		ref.Revision = *c.Revision
	}
	found, err := charm.Repository{Dir: dir}.Find(ref)
	return found, state.Origin{Repository: dir, Path: found.Path, Series: found.Series, Name: ref.Name}, err
}

// lookupSeries returns "" for any.
func (u *upgrade) lookupSeries() string {
	if u.anySeries || u.service.ForceSeries {
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
	t.url.Revision, t.bumped = u.current.URL.Revision+1, true
	return t, nil
}

// isSameCharm reports whether the files are the charm's own.
func (o *operator) isSameCharm(found charm.Found, c state.Charm) (bool, error) {
	opts := charm.ArchiveOptions{Tools: o.parts.HookTools, Revision: c.URL.Revision}
	info, err := charm.Archive(found.Path, io.Discard, opts)
	return info.SHA256 == c.SHA256, err
}
