package leader

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/state/wrap"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// checkReleases looks for releases: when the interval is over, when an operator asks for it, and
// when the source of releases is configured anew. Failures are retried with growing delays.
func (l leader) checkReleases(ctx context.Context) error {
	c := releaseChecker{leader: l}
	defer c.close()
	return l.followKeys(ctx, []string{keys.AllConfig, keys.Infos}, func() (time.Time, error) {
		until, err := c.checkIfDue(ctx)
		if err != nil && !endsLeadership(err) {
			slog.Warn("cannot look for releases; trying again", "error", err)
			until = time.Now().Add(updater.RetryInterval)
		}
		return until, err
	})
}

// releaseChecker remembers the last check and its result.
type releaseChecker struct {
	leader
	source     *release.Source
	lastQuery  query
	lastCheck  time.Time
	failures   int           // in a row
	retryDelay time.Duration // after a failure
}

// query has all that a check depends on. When it changes, the next check is due at once.
type query struct {
	env, prefix, repository, url, token, proxy, key string
	trigger                                         string // changes when an operator asks for a check
	wanted                                          string // the version that servers would take next
	wantedKnown                                     bool   // its digests are known
}

func (c *releaseChecker) checkIfDue(ctx context.Context) (until time.Time, err error) {
	config, q, err := c.readQuery(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if config.GitHubRepository == "" || config.Env == record.EnvNone && q.wanted == "" {
		c.lastQuery = query{}
		return time.Time{}, nil
	}
	if c.source == nil || q.source() != c.lastQuery.source() {
		c.close()
		c.failures = 0
		if c.source, err = release.NewSource(config); err != nil {
			return time.Time{}, err
		}
	}
	if q == c.lastQuery && time.Now().Before(c.nextCheck(config)) {
		return c.nextCheck(config), nil
	}
	c.lastQuery = q
	if err := c.checkNow(ctx, config); err != nil {
		return time.Time{}, err
	}
	return c.nextCheck(config), nil
}

func (c *releaseChecker) readQuery(ctx context.Context) (config record.Config, q query, err error) {
	err = c.Store.View(ctx, func(v *keyspace.View) error {
		if config, err = updater.LoadConfig(v); err != nil || config.GitHubRepository == "" {
			return err
		}
		s, err := decide.Load(v, c.Version)
		if err != nil {
			return err
		}
		config, q = s.Config, newQuery(s.Config)
		q.wanted, _, _ = s.OfferedVersion()
		q.wantedKnown = s.Published != nil && release.Same(s.Published.Version, q.wanted)
		q.trigger, _, err = keyspace.Load[string](v, keys.Check)
		return err
	})
	return config, q, err
}

func newQuery(c record.Config) query {
	return query{env: c.Env, prefix: c.TagPrefix, repository: c.GitHubRepository, url: c.GitHubURL, token: c.GitHubToken, proxy: c.Proxy, key: c.MinisignKey}
}

func (q query) source() query {
	q.trigger, q.wanted, q.wantedKnown = "", "", false
	return q
}

func (c *releaseChecker) nextCheck(config record.Config) time.Time {
	if c.failures > 0 {
		return c.lastCheck.Add(c.retryDelay)
	}
	return c.lastCheck.Add(config.CheckInterval)
}

func (c *releaseChecker) close() {
	if c.source != nil {
		c.source.Close()
		c.source = nil
	}
}

func (c *releaseChecker) checkNow(ctx context.Context, config record.Config) error {
	f, err := c.queryReleases(ctx)
	c.lastCheck = time.Now()
	c.Metrics.Add(1, checksMetric, "result", metrics.Result(err == nil))
	if err == nil {
		c.Metrics.Set(metrics.UnixSeconds(c.lastCheck), lastCheckMetric)
	}
	if ctx.Err() != nil {
		return nil
	}
	if c.failures++; err == nil {
		c.failures = 0
	} else {
		c.retryDelay = release.Delay(err, c.failures, config.CheckInterval, c.lastCheck)
		slog.Warn("cannot look for releases", "error", err, "again-in", c.retryDelay.Round(time.Second))
	}
	return c.commitIfUnchanged(ctx, config, func(tx *keyspace.Tx) (failed error) {
		if err == nil {
			tx.Remove(keys.CheckFailure)
		} else {
			failed = f.putFailure(tx, err, c.lastCheck.UTC())
		}
		if f.listed {
			failed = errors.Join(failed, f.putRelease(tx))
		}
		return failed
	})
}

var errQueryChanged = errors.New("the configuration has changed")

// commitIfUnchanged drops the result of a check whose configuration has changed
// meanwhile: the next check is for that.
func (c *releaseChecker) commitIfUnchanged(ctx context.Context, config record.Config, f func(tx *keyspace.Tx) error) error {
	err := c.leadership.Update(ctx, func(tx *keyspace.Tx) error {
		now, err := updater.LoadConfig(tx.View)
		if err != nil {
			return err
		}
		if newQuery(now) != newQuery(config) {
			return errQueryChanged
		}
		return f(tx)
	})
	return wrap.Unless(err, errQueryChanged)
}

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
	err := tx.PutOrRemove(keys.Release, f.newest, f.newest != "")
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
