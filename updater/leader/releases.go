package leader

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// checkResult is the result of a look for releases.
type checkResult struct {
	listed    bool // the releases are known, and which one servers would take
	newest    string
	refused   string            // the version that servers would take, which cannot be had or trusted
	published *record.Published // nil: as before
}

func (c *releaseChecker) queryReleases(ctx context.Context) (f checkResult, err error) {
	all, err := c.source.Releases(ctx)
	if err != nil {
		return f, err
	}
	choice, ok, incomplete := c.source.Newest(all)
	if f.listed = true; ok {
		f.newest = choice.Version.String()
	}
	s, err := keyspace.Read(ctx, c.Store, func(v *keyspace.View) (decide.Snapshot, error) { return decide.Load(v, c.Version) })
	if err != nil {
		return f, err
	}
	s.Release = f.newest
	c.lastQuery.wanted, _, _ = s.OfferedVersion()
	if f.published, err = c.inspectRelease(ctx, s, all); err != nil && (s.Current == nil || !release.Same(c.lastQuery.wanted, s.Current.Version)) {
		f.refused = c.lastQuery.wanted
	}
	c.lastQuery.wantedKnown = err == nil && f.published != nil || s.Published != nil && release.Same(s.Published.Version, c.lastQuery.wanted)
	if err == nil {
		err = incomplete
	}
	return f, err
}

// inspectRelease returns the digests of the release that servers would take next; nil if
// there is none, or if they have it already and it is no longer published.
func (c *releaseChecker) inspectRelease(ctx context.Context, s decide.Snapshot, all []release.Release) (*record.Published, error) {
	to := c.lastQuery.wanted
	r, err := release.Lookup(to, s.Config.TagPrefix, all)
	if to == "" || err != nil && s.Current != nil && release.Same(to, s.Current.Version) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	known := record.Digests{}
	if s.Published != nil && release.Same(s.Published.Version, to) {
		known = s.Published.Digests
	}
	dir, err := os.MkdirTemp("", "neco-updater-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	d, err := c.source.Digests(ctx, r, c.Form, known, dir)
	if err != nil {
		return nil, err
	}
	return &record.Published{Version: to, Digests: d}, nil
}

// putRelease alerts once when the files of a release that servers have were replaced.
func (f checkResult) putRelease(tx *keyspace.Tx) error {
	var err error
	if f.newest == "" {
		tx.Remove(keys.Release)
	} else {
		err = tx.Put(keys.Release, f.newest)
	}
	was, failed := updater.ReadKey[record.Published](tx.View, keys.Published)
	if err != nil || failed != nil || f.published == nil || was != nil && *was == *f.published {
		return errors.Join(err, failed)
	}
	r, err := updater.LoadRequest(tx.View)
	t, failed := updater.ReadKey[record.Target](tx.View, keys.Target)
	err = errors.Join(err, failed)
	if why := (decide.Snapshot{Current: r, Target: t, Published: f.published}).Replaced(); err == nil && why != "" {
		a := record.Alert{
			ID: "replaced-" + record.ShortDigest(f.published.Sums), Kind: record.AlertReplaced, Version: f.published.Version,
			Message: why, At: time.Now().UTC(),
		}
		err = tx.Put(keys.Alert(a.ID), a)
	}
	return errors.Join(err, tx.Put(keys.Published, f.published))
}

// putFailure alerts once for each release that cannot be taken.
func (f checkResult) putFailure(tx *keyspace.Tx, why error, at time.Time) error {
	was, _, err := keyspace.Load[record.CheckFailure](tx, keys.CheckFailure)
	failure := record.CheckFailure{Message: why.Error(), At: at, Refused: was.Refused}
	if f.refused != "" && f.refused != failure.Refused {
		failure.Refused = f.refused
		a := record.Alert{
			ID: fmt.Sprintf("refused-%d", at.UnixNano()), Kind: record.AlertRefused, Version: f.refused,
			Message: fmt.Sprintf("release %s is not taken, and nothing begins: %v", f.refused, why), At: at,
		}
		err = errors.Join(err, tx.Put(keys.Alert(a.ID), a))
	}
	return errors.Join(err, tx.Put(keys.CheckFailure, failure))
}
