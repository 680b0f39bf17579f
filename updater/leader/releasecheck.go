package leader

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/keyspace"
	"bijou/state/metrics"
	"bijou/state/osutil"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// checkReleases checks for releases at each interval, at an operator's request, and when the configuration of
// the source changes. It retries failed checks after growing delays.
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
	failures   int           // the number of consecutive checks that failed or refused a release
	retryDelay time.Duration // the delay after a check that failed or refused a release
}

// query contains everything that a check depends on. If it changes, the next check is due at once.
type query struct {
	env, prefix, repository, url, token, folder, proxy, key string
	fault                                                   string // record.Config.SourceFault
	trigger                                                 string // changes when an operator requests a check
	wanted                                                  string // the version that servers would install next
	wantedKnown                                             bool   // whether the digests of that version are known
}

// checkIfDue checks for releases if a check is due or the query has changed. It returns the time of the next
// check, or zero if there is no source.
func (c *releaseChecker) checkIfDue(ctx context.Context) (until time.Time, err error) {
	config, q, err := c.readQuery(ctx)
	if err != nil {
		return time.Time{}, err
	}
	if !namesSource(config) || !config.WantsReleases() && q.wanted == "" {
		c.lastQuery = query{}
		return time.Time{}, nil
	}

	if q.source() != c.lastQuery.source() {
		c.close()
		c.failures = 0
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

// readQuery reads the configuration and the next query in one view. If the configuration names no source of
// releases, the query is empty.
func (c *releaseChecker) readQuery(ctx context.Context) (config record.Config, q query, err error) {
	err = c.Store.View(ctx, func(v *keyspace.View) error {
		config, err = updater.LoadConfig(v)
		if err != nil || !namesSource(config) {
			return err
		}
		s, err := decide.Load(v, c.Version)
		if err != nil {
			return err
		}

		config = s.Config
		q = newQuery(s.Config)
		q.wanted, _, _ = s.OfferedVersion()
		q.wantedKnown = s.IsChecked(q.wanted)
		q.trigger, _, err = keyspace.Load[string](v, keys.Check)
		return err
	})

	return config, q, err
}

// namesSource reports whether the configuration names a source of releases. A source with a fault also
// counts, so that its check fails and is reported.
func namesSource(c record.Config) bool { return c.HasSource() || c.SourceFault != "" }

// newQuery returns the part of a query that depends on the configuration.
func newQuery(c record.Config) query {
	return query{
		fault:      c.SourceFault,
		env:        c.Env,
		prefix:     c.TagPrefix,
		repository: c.GitHubRepository,
		url:        c.GitHubURL,
		token:      c.GitHubToken,
		folder:     c.ReleaseFolder,
		proxy:      c.Proxy,
		key:        c.MinisignKey,
	}
}

func (q query) source() query {
	q.trigger = ""
	q.wanted = ""
	q.wantedKnown = false
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

// checkNow checks for releases, and commits the result unless the configuration has changed in the
// meantime. A failed check is also a result.
func (c *releaseChecker) checkNow(ctx context.Context, config record.Config) error {
	found, err := c.queryReleases(ctx, config)
	c.lastCheck = time.Now()
	c.Metrics.Add(1, checksMetric, "result", metrics.Result(err == nil))
	if err == nil {
		c.Metrics.Set(metrics.UnixSeconds(c.lastCheck), lastCheckMetric)
	}
	if ctx.Err() != nil {
		return nil
	}

	// A refused release counts as a failure, since its publisher may fix it soon.
	c.failures++
	if err == nil && len(found.refusals) == 0 {
		c.failures = 0
	}
	c.retryDelay = release.Delay(err, c.failures, config.CheckInterval, c.lastCheck)
	if err != nil {
		slog.Warn("cannot look for releases", "error", err, "again-in", c.retryDelay.Round(time.Second))
	}

	look := c.newLook(config, found, err)
	return c.commitIfUnchanged(ctx, config, func(tx *keyspace.Tx) error {
		if err := found.putLook(tx, look); err != nil || !found.listed {
			return err
		}
		if err := found.putRefusals(tx, c.lastCheck.UTC()); err != nil {
			return err
		}

		return found.putRelease(tx)
	})
}

// newLook describes a check for releases. The check has failed if err is not nil.
func (c *releaseChecker) newLook(config record.Config, f checkResult, err error) decide.Look {
	look := decide.Look{
		Missed: f.missed,
		At:     c.lastCheck.UTC(),
		Again:  c.nextCheck(config).UTC(),
		MaxAge: config.MaxCheckAge,
		Hint:   decide.SourceHint(config),
	}
	if err != nil {
		// Any other error has no kind.
		sourceErr, _ := errors.AsType[release.SourceError](err)
		look.Failure = record.Shorten(osutil.Explain(err), record.MaxText)
		look.Kind = string(sourceErr.Kind)
	}

	return look
}

var errQueryChanged = errors.New("the configuration has changed")

// commitIfUnchanged commits the result of a check, unless the configuration has changed in the meantime.
// The next check then uses the new configuration.
func (c *releaseChecker) commitIfUnchanged(
	ctx context.Context,
	config record.Config,
	f func(tx *keyspace.Tx) error,
) error {
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
	if errors.Is(err, errQueryChanged) {
		return nil
	}

	return err
}

// checkResult is the result of a check for releases.
type checkResult struct {
	listed   bool             // the releases were listed, so newest is known
	newest   string           // the version of the newest release that can be installed
	refusals []record.Refusal // the releases that cannot be installed, the newest first
	missed   string           // the version that servers should install, if it cannot be fetched now
	// published is the release that servers should install. If it is nil, the recorded release is kept.
	published *record.Published
	// needs are the needs of the published release. If they are nil, the recorded needs are kept.
	needs     *record.Needs
	withdrawn *record.Withdrawn // the version that servers have, if it is no longer published
}

// refuse records that the release cannot be installed if err is a RefusedError, and returns true. For any
// other err it returns false.
func (f *checkResult) refuse(version string, err error) bool {
	refused, ok := errors.AsType[release.RefusedError](err)
	if !ok {
		return false
	}

	known := slices.ContainsFunc(f.refusals, func(r record.Refusal) bool {
		return release.Same(r.Version, version)
	})
	if !known && len(f.refusals) < record.MaxRefusals {
		f.refusals = append(f.refusals, record.Refusal{
			Version: version,
			Sums:    refused.Sums,
			Why:     record.Shorten(err.Error(), record.MaxReason),
		})
	}

	return true
}

// queryReleases lists the releases. It inspects the newest releases and the release that servers should
// install. If it returns an error after the list was read, f.listed is true, and f has the parts that are
// known.
func (c *releaseChecker) queryReleases(ctx context.Context, config record.Config) (f checkResult, err error) {
	if c.source == nil {
		if c.source, err = release.NewSource(config); err != nil {
			return f, err
		}
	}

	all, err := c.source.Releases(ctx)
	if err != nil {
		return f, err
	}

	s, err := keyspace.Read(ctx, c.Store, func(v *keyspace.View) (decide.Snapshot, error) {
		return decide.Load(v, c.Version)
	})
	if err != nil {
		return f, err
	}

	f.listed = true
	f.withdrawn = findWithdrawn(s, all)
	incomplete, failed := c.chooseNewest(ctx, s, all, &f)

	// With the newest release of this check, s also says which version servers should install.
	s.Release = f.newest
	wanted, _, _ := s.OfferedVersion()
	isNewest := wanted != "" && release.Same(wanted, f.newest)
	if !isNewest {
		// Servers should install a different version, for example at an operator's request.
		f.published = nil
		f.needs = nil
	}

	isMissed := failed != nil && isNewest
	if f.published == nil && !isMissed {
		// chooseNewest has returned nothing about the wanted version.
		if err := c.inspectWanted(ctx, s, wanted, all, &f); err != nil {
			failed = err
			isMissed = true
		}
	}
	if isMissed && (s.Current == nil || !release.Same(wanted, s.Current.Version)) {
		f.missed = wanted
	}

	// The next query depends on this result. Note it as part of the last query, so that the difference does not
	// make another check due.
	if f.published != nil {
		s.Published = f.published
	}
	c.lastQuery.wanted = wanted
	c.lastQuery.wantedKnown = s.IsChecked(wanted)

	if failed != nil {
		return f, failed
	}
	return f, incomplete
}

// findWithdrawn returns the release that servers have or are installing, if it is newer than all published
// releases and pre-releases. It returns nil otherwise.
func findWithdrawn(s decide.Snapshot, all []release.Release) *record.Withdrawn {
	if s.Current == nil {
		return nil
	}

	w := record.Withdrawn{Version: s.Current.Version}
	if best, ok := release.Choose(record.EnvStaging, s.Config.TagPrefix, all); ok {
		w.Newest = best.Version.String()
	}
	if !release.Newer(w.Version, w.Newest) {
		return nil
	}

	return &w
}

// chooseNewest finds the newest release that can be installed, and records it and all refused releases in f. It
// inspects only releases that are newer than the servers' version. If a release cannot be fetched now,
// chooseNewest does not choose an older one, since the newer release may be valid. failed is then the reason.
// incomplete is [release.ErrIncomplete] if the best of all releases is not complete.
func (c *releaseChecker) chooseNewest(
	ctx context.Context,
	s decide.Snapshot,
	all []release.Release,
	f *checkResult,
) (incomplete, failed error) {
	candidates, incomplete := c.source.Candidates(all)

	for _, choice := range candidates {
		version := choice.Version.String()
		if !s.IsNews(version) {
			f.newest = version
			return incomplete, nil
		}

		published, needs, err := c.inspect(ctx, s, version, choice.Release)
		if f.refuse(version, err) {
			continue
		}

		f.newest = version
		f.published = published
		f.needs = needs
		return incomplete, err
	}

	return incomplete, nil
}

// inspectWanted records in f the digests and needs of the version that servers should install, or its
// refusal. It does nothing if no version is wanted, or if servers already have the version and it is no
// longer published. It returns an error if the version cannot be fetched now.
func (c *releaseChecker) inspectWanted(
	ctx context.Context,
	s decide.Snapshot,
	wanted string,
	all []release.Release,
	f *checkResult,
) error {
	if wanted == "" {
		return nil
	}

	r, err := release.Lookup(wanted, s.Config.TagPrefix, all)
	if err != nil && s.Current != nil && release.Same(wanted, s.Current.Version) {
		return nil
	}
	if err != nil {
		return err
	}

	published, needs, err := c.inspect(ctx, s, wanted, r)
	if f.refuse(wanted, err) {
		return nil
	}
	if err != nil {
		return err
	}

	f.published = published
	f.needs = needs
	return nil
}

// inspect checks that the release can be installed, and returns its digests and needs. If all servers have
// the release, inspect only reads its digests, and returns nil needs. It returns a [release.RefusedError] if
// the release cannot be installed.
func (c *releaseChecker) inspect(
	ctx context.Context,
	s decide.Snapshot,
	version string,
	r release.Release,
) (*record.Published, *record.Needs, error) {
	dir, err := os.MkdirTemp("", "neco-updater-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)

	p := record.Published{Version: version}
	known := record.Digests{}
	if s.Published != nil && release.Same(s.Published.Version, version) {
		known = s.Published.Digests
		p.Checked = s.Published.Checked
	}

	if s.IsEverywhere(version) {
		p.Digests, err = c.source.Digests(ctx, r, c.Form, known, dir)
		if err != nil {
			return nil, nil, err
		}
		if p.Digests != known {
			p.Checked = ""
		}
		return &p, nil, nil
	}

	// If no leader has checked the release, or its needs are unknown, it is inspected again.
	if p.Checked == "" || s.Needs == nil || !release.Same(s.Needs.Version, version) {
		known = record.Digests{}
	}
	found, err := c.source.Inspect(ctx, r, release.Inspection{
		Form:    c.Form,
		Running: c.Version,
		Others:  otherPackages(s),
		Known:   known,
		Dir:     dir,
	})
	if err != nil {
		return nil, nil, err
	}

	p.Checked = c.Version
	p.Digests = found.Digests
	return &p, found.Needs, nil
}

// otherPackages returns the package forms and architectures that the servers' workers report.
func otherPackages(s decide.Snapshot) (all []release.Package) {
	for _, lrn := range s.Servers {
		p, ok := release.ParsePackage(s.Present[lrn].Package)
		if ok && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}

	slices.SortFunc(all, func(a, b release.Package) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// putRefusals records the refused releases, and writes one alert for each. The record shows which releases
// were reported, and is written in the same transaction.
func (f checkResult) putRefusals(tx *keyspace.Tx, at time.Time) error {
	was, err := keyspace.LoadOrZero[record.Refusals](tx.View, keys.Refused)
	if err != nil {
		return err
	}

	now := record.Refusals{Releases: slices.Clone(f.refusals)}

	for i := range now.Releases {
		r := &now.Releases[i]
		known := slices.IndexFunc(was.Releases, func(old record.Refusal) bool { return old.Version == r.Version })
		if known >= 0 {
			r.At = was.Releases[known].At
			continue
		}

		r.At = at
		a := record.Alert{
			ID:      "refused-" + r.Version + "-" + strconv.FormatInt(at.UnixNano(), 10),
			Kind:    record.AlertRefused,
			Version: r.Version,
			Message: decide.RefusedAlert(*r),
			At:      at,
		}

		if err := tx.Put(keys.Alert(a.ID), a); err != nil {
			return err
		}
	}

	if reflect.DeepEqual(now.Releases, was.Releases) {
		return nil
	}

	return tx.PutOrRemove(keys.Refused, now, len(now.Releases) > 0)
}

// putRelease records the newest release and the release that servers should install. If the files of an
// installed release were replaced, it adds an alert, once for those files.
func (f checkResult) putRelease(tx *keyspace.Tx) error {
	if err := tx.PutOrRemove(keys.Release, f.newest, f.newest != ""); err != nil {
		return err
	}
	if err := f.putNeeds(tx); err != nil {
		return err
	}

	was, err := updater.ReadKey[record.Published](tx.View, keys.Published)
	if err != nil {
		return err
	}
	if f.published == nil || was != nil && *was == *f.published {
		return nil
	}

	r, err := updater.LoadRequest(tx.View)
	if err != nil {
		return err
	}
	t, err := updater.ReadKey[record.Target](tx.View, keys.Target)
	if err != nil {
		return err
	}

	isNew := was == nil || was.Version != f.published.Version || was.Digests != f.published.Digests
	why := decide.Snapshot{Current: r, Target: t, Published: f.published}.Replaced()
	if isNew && why != "" {
		a := record.Alert{
			ID:      "replaced-" + record.ShortDigest(f.published.Sums),
			Kind:    record.AlertReplaced,
			Version: f.published.Version,
			Message: why,
			At:      time.Now().UTC(),
		}
		if err := tx.Put(keys.Alert(a.ID), a); err != nil {
			return err
		}
	}

	return tx.Put(keys.Published, f.published)
}

// putNeeds records the needs of the release, if they are known and have changed.
func (f checkResult) putNeeds(tx *keyspace.Tx) error {
	if f.published == nil || f.needs == nil {
		return nil
	}
	was, err := updater.ReadKey[record.Needs](tx.View, keys.Needs)
	if err != nil || was != nil && reflect.DeepEqual(*was, *f.needs) {
		return err
	}

	return tx.Put(keys.Needs, *f.needs)
}

// putLook records the result of the check, and an installed release that is no longer published.
func (f checkResult) putLook(tx *keyspace.Tx, l decide.Look) error {
	was, err := updater.ReadKey[record.CheckFailure](tx.View, keys.CheckFailure)
	if err != nil {
		return err
	}
	if err := updater.Apply(tx, decide.NoteLook(was, l)); err != nil || !f.listed {
		return err
	}

	withdrawn, err := updater.ReadKey[record.Withdrawn](tx.View, keys.Withdrawn)
	if err != nil {
		return err
	}

	return updater.Apply(tx, decide.NoteWithdrawn(withdrawn, f.withdrawn, l.At))
}
