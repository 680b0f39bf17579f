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

// checkReleases checks for releases at each interval, and at once when the query changes, for example at an
// operator's request. It retries failed checks after growing delays, or after the delay that the source requests.
func (l leader) checkReleases(ctx context.Context) error {
	c := releaseChecker{leader: l}
	defer c.close()

	return l.followKeys(ctx, []string{keys.AllConfig, keys.Infos}, func() (time.Time, error) {
		until, err := c.checkIfDue(ctx)
		if err != nil && !endsLeadership(err) {
			// The store could not be read or written. checkNow records a failed check, and returns no error for it.
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
	unrecorded bool          // the result of the last check could not be recorded
	lastCheck  time.Time     // when the last check ended
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
// check. That time is zero if there is no source, if servers would install no release, or with an error.
func (c *releaseChecker) checkIfDue(ctx context.Context) (until time.Time, err error) {
	config, q, err := c.readQuery(ctx)
	if err != nil {
		return time.Time{}, err
	}
	needsReleases := config.WantsReleases() || q.wanted != ""
	if !namesSource(config) || !needsReleases {
		// The next query that needs a check then differs, and is made at once.
		c.lastQuery = query{}
		return time.Time{}, nil
	}

	if q.source() != c.lastQuery.source() {
		// The next check opens the new source. The failures were those of the previous source.
		c.close()
		c.failures = 0
	}
	if q == c.lastQuery && time.Now().Before(c.nextCheck(config)) {
		return c.nextCheck(config), nil
	}

	// A check that fails also answers the query. nextCheck gives the time of its retry.
	c.lastQuery = q
	err = c.checkNow(ctx, config)
	c.unrecorded = err != nil
	if err != nil {
		return time.Time{}, err
	}

	return c.nextCheck(config), nil
}

// readQuery reads the configuration and the next query in one view. If the configuration names no source of
// releases, the query is empty.
func (c *releaseChecker) readQuery(ctx context.Context) (config record.Config, q query, err error) {
	err = c.Store.View(ctx, func(v *keyspace.View) error {
		config, err = updater.LoadConfig(v)
		if err != nil {
			return err
		}
		if !namesSource(config) {
			return nil
		}
		s, err := decide.Load(v, c.Version)
		if err != nil {
			return err
		}

		config = s.Config // equal to the configuration above, which is from the same view
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

// source returns the part of the query that depends on the configuration.
func (q query) source() query {
	q.trigger = ""
	q.wanted = ""
	q.wantedKnown = false
	return q
}

// maxUnrecordedDelay limits the delay after a successful check whose result could not be recorded, for example since
// the store was away. It is not much shorter, so that a store that cannot be written to does not cause many requests
// to the source. The delay after a failed check is not limited, since the source may have asked for it.
const maxUnrecordedDelay = time.Minute

// nextCheck returns when the next check is due if the query does not change.
func (c *releaseChecker) nextCheck(config record.Config) time.Time {
	switch {
	case c.failures > 0:
		return c.lastCheck.Add(c.retryDelay)
	case c.unrecorded:
		return c.lastCheck.Add(min(config.CheckInterval, maxUnrecordedDelay))
	}
	return c.lastCheck.Add(config.CheckInterval)
}

// close closes the source, if it is open.
func (c *releaseChecker) close() {
	if c.source != nil {
		c.source.Close()
		c.source = nil
	}
}

// checkNow checks for releases, and commits the result unless the configuration of the source has changed in the
// meantime. A failed check is also a result. checkNow returns an error only if the result could not be committed.
func (c *releaseChecker) checkNow(ctx context.Context, config record.Config) error {
	found, err := c.queryReleases(ctx, config)
	c.lastCheck = time.Now()
	c.unrecorded = false // the value of the previous check must not affect newLook
	if ctx.Err() != nil {
		// The check was interrupted, so it has no result to count or commit.
		return nil
	}
	c.Metrics.Add(1, checksMetric, "result", metrics.Result(err == nil))
	if err == nil {
		c.Metrics.Set(metrics.UnixSeconds(c.lastCheck), lastCheckMetric)
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
		if err := found.putLook(tx, look); err != nil {
			return err
		}
		if !found.listed {
			// The releases are unknown, so the recorded ones stay.
			return nil
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
		// For an error of another type, sourceErr is zero, and the failure has no kind.
		sourceErr, _ := errors.AsType[release.SourceError](err)
		look.Failure = record.Shorten(osutil.Explain(err), record.MaxText)
		look.Kind = string(sourceErr.Kind)
	}

	return look
}

// errQueryChanged ends a transaction of commitIfUnchanged without a commit.
var errQueryChanged = errors.New("the configuration has changed")

// commitIfUnchanged calls f in a transaction, which commits the result of a check with the given
// configuration. If the stored configuration of the source has changed in the meantime, commitIfUnchanged commits
// nothing and returns nil. In that case the next check uses the new configuration.
func (c *releaseChecker) commitIfUnchanged(
	ctx context.Context,
	config record.Config,
	f func(tx *keyspace.Tx) error,
) error {
	err := c.leadership.Update(ctx, func(tx *keyspace.Tx) error {
		stored, err := updater.LoadConfig(tx.View)
		if err != nil {
			return err
		}
		if newQuery(stored) != newQuery(config) {
			return errQueryChanged
		}

		return f(tx)
	})
	if errors.Is(err, errQueryChanged) {
		// The result is not recorded. Check again, even if the configuration changes back.
		c.lastQuery = query{}
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

// refuse records that the release cannot be installed if err is a RefusedError, and returns true. It records each
// version once, and at most record.MaxRefusals in all. For any other err, also nil, it returns false.
func (f *checkResult) refuse(version string, err error) bool {
	refused, ok := errors.AsType[release.RefusedError](err)
	if !ok {
		return false
	}

	isRecorded := slices.ContainsFunc(f.refusals, func(r record.Refusal) bool {
		return release.Same(r.Version, version)
	})
	if !isRecorded && len(f.refusals) < record.MaxRefusals {
		f.refusals = append(f.refusals, record.Refusal{
			Version: version,
			Sums:    refused.Sums,
			Why:     record.Shorten(err.Error(), record.MaxReason),
		})
	}

	return true
}

// queryReleases lists the releases, and inspects the newest releases and the release that servers should
// install. If an error occurs during the inspection, f.listed is true, and f has the parts of the result that
// are known. After an earlier error, f is empty.
func (c *releaseChecker) queryReleases(ctx context.Context, config record.Config) (f checkResult, err error) {
	if c.source == nil {
		if c.source, err = release.NewSource(config); err != nil {
			return f, err
		}
	}

	releases, err := c.source.Releases(ctx)
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
	f.withdrawn = findWithdrawn(s, releases)
	err = c.inspectReleases(ctx, s, releases, &f)
	return f, err
}

// inspectReleases inspects the newest releases and the release that servers should install, and adds the
// findings to f. It returns an error if it cannot inspect one of these releases now. Otherwise it returns
// [release.ErrIncomplete] if the best release that the environment accepts is not complete.
func (c *releaseChecker) inspectReleases(
	ctx context.Context,
	s decide.Snapshot,
	releases []release.Release,
	f *checkResult,
) error {
	incomplete, failure := c.chooseNewest(ctx, s, releases, f)

	// With the newest release of this check, s also shows which version servers should install.
	s.Release = f.newest
	wanted, _, _ := s.OfferedVersion()
	isNewest := wanted != "" && release.Same(wanted, f.newest)
	if !isNewest {
		// Servers should install a different version, for example at an operator's request.
		f.published = nil
		f.needs = nil
	}

	isMissed := failure != nil && isNewest // the wanted version cannot be fetched now
	if f.published == nil && !isMissed {
		// f does not have the digests of the wanted version yet.
		if err := c.inspectWanted(ctx, s, wanted, releases, f); err != nil {
			failure = err
			isMissed = true
		}
	}
	isCurrent := s.Current != nil && release.Same(wanted, s.Current.Version)
	if isMissed && !isCurrent {
		f.missed = wanted
	}

	if f.published != nil {
		s.Published = f.published
	}
	// The next query will contain the wanted version, and must not cause another check.
	c.rememberWanted(s, wanted)

	if failure != nil {
		return failure
	}
	return incomplete
}

// rememberWanted makes the wanted version part of the last query. The next query also contains this version.
// If it differed from the last query, another check would be due at once.
func (c *releaseChecker) rememberWanted(s decide.Snapshot, wanted string) {
	c.lastQuery.wanted = wanted
	c.lastQuery.wantedKnown = s.IsChecked(wanted)
}

// findWithdrawn returns the release that servers have or are installing, if that release is newer than all
// published releases and pre-releases with the configured tag prefix. It returns nil otherwise.
func findWithdrawn(s decide.Snapshot, releases []release.Release) *record.Withdrawn {
	if s.Current == nil {
		return nil
	}

	w := record.Withdrawn{Version: s.Current.Version}
	// Choose considers pre-releases only for staging.
	if best, ok := release.Choose(record.EnvStaging, s.Config.TagPrefix, releases); ok {
		w.Newest = best.Version.String()
	}
	if !release.Newer(w.Version, w.Newest) {
		return nil
	}

	return &w
}

// chooseNewest finds the newest release that can be installed, and records in f this release and the newer ones
// that are refused. It inspects only releases that are newer than the servers' version. If a release cannot be
// fetched now, failure is the reason. chooseNewest does not choose an older release in its place, since the newer
// release may be valid. incomplete is [release.ErrIncomplete] if the best release that the environment accepts is
// not complete.
func (c *releaseChecker) chooseNewest(
	ctx context.Context,
	s decide.Snapshot,
	releases []release.Release,
	f *checkResult,
) (incomplete, failure error) {
	candidates, incomplete := c.source.Candidates(releases)

	for _, choice := range candidates {
		version := choice.Version.String()
		if !s.IsNews(version) {
			f.newest = version
			return incomplete, nil
		}

		published, needs, err := c.inspect(ctx, s, version, choice.Release)
		if f.refuse(version, err) {
			// The next candidate is older.
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
// refusal. It returns an error if the version is not published, or cannot be fetched now. It does nothing if no
// version is wanted, or if the version is not published but is that of the running or last update.
func (c *releaseChecker) inspectWanted(
	ctx context.Context,
	s decide.Snapshot,
	wanted string,
	releases []release.Release,
	f *checkResult,
) error {
	if wanted == "" {
		return nil
	}

	r, err := release.Lookup(wanted, s.Config.TagPrefix, releases)
	if err != nil {
		isCurrent := s.Current != nil && release.Same(wanted, s.Current.Version)
		if isCurrent {
			return nil
		}
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

// inspect checks that release r, which has the given version, can be installed. It returns the digests and
// the needs of the release. The needs are nil if an earlier check has recorded them and the release has not changed.
// If all servers have the release, or the running or last update is to it, inspect only reads its digests, and the
// needs are also nil. It returns a [release.RefusedError] if the release cannot be installed.
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
	known := record.Digests{} // the digests that a leader has recorded for this version
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
			// The files were replaced, and no leader has checked the new files.
			p.Checked = ""
		}
		return &p, nil, nil
	}

	// Inspect skips a release with known digests. If no leader has checked the release, or its needs are
	// unknown, it must be inspected again.
	if p.Checked == "" || s.Needs == nil || !release.Same(s.Needs.Version, version) {
		known = record.Digests{}
	}
	found, err := c.source.Inspect(ctx, r, release.Inspection{
		Form:    c.Form,
		Running: c.Version,
		Others:  reportedPackages(s),
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

// reportedPackages returns the package forms and architectures that the servers' workers report.
func reportedPackages(s decide.Snapshot) (all []release.Package) {
	for _, lrn := range s.Servers {
		p, ok := release.ParsePackage(s.Present[lrn].Package)
		if ok && !slices.Contains(all, p) {
			all = append(all, p)
		}
	}

	slices.SortFunc(all, func(a, b release.Package) int { return strings.Compare(a.String(), b.String()) })
	return all
}

// putRefusals replaces the record of refused releases, and writes one alert for each release that was not in the
// record. So the record shows which releases were reported, and is written in the same transaction.
func (f checkResult) putRefusals(tx *keyspace.Tx, at time.Time) error {
	recorded, err := keyspace.LoadOrZero[record.Refusals](tx.View, keys.Refused)
	if err != nil {
		return err
	}

	found := record.Refusals{Releases: slices.Clone(f.refusals)}
	for i := range found.Releases {
		r := &found.Releases[i]
		index := slices.IndexFunc(recorded.Releases, func(old record.Refusal) bool { return old.Version == r.Version })
		if index >= 0 {
			r.At = recorded.Releases[index].At
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

	if reflect.DeepEqual(found.Releases, recorded.Releases) {
		return nil
	}

	return tx.PutOrRemove(keys.Refused, found, len(found.Releases) > 0)
}

// putRelease records the newest release. It also records the digests and needs of the release that servers should
// install, if the check has found them. If the files of an installed or requested release were replaced, it adds an
// alert, once for the new files.
func (f checkResult) putRelease(tx *keyspace.Tx) error {
	if err := tx.PutOrRemove(keys.Release, f.newest, f.newest != ""); err != nil {
		return err
	}
	if err := f.putNeeds(tx); err != nil {
		return err
	}

	recorded, err := updater.ReadKey[record.Published](tx.View, keys.Published)
	if err != nil {
		return err
	}
	hasChanged := f.published != nil && (recorded == nil || *recorded != *f.published)
	if !hasChanged {
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

	hasSameFiles := recorded != nil &&
		recorded.Version == f.published.Version && recorded.Digests == f.published.Digests
	why := decide.Snapshot{Current: r, Target: t, Published: f.published}.Replaced() // reads only these fields
	if !hasSameFiles && why != "" {
		if err := putReplacedAlert(tx, *f.published, why); err != nil {
			return err
		}
	}

	return tx.Put(keys.Published, f.published)
}

// putReplacedAlert writes an alert about a release whose files were replaced.
func putReplacedAlert(tx *keyspace.Tx, p record.Published, why string) error {
	a := record.Alert{
		ID:      "replaced-" + record.ShortDigest(p.Sums),
		Kind:    record.AlertReplaced,
		Version: p.Version,
		Message: why,
		At:      time.Now().UTC(),
	}
	return tx.Put(keys.Alert(a.ID), a)
}

// putNeeds records the needs of the release that servers should install, if the check has found them and they differ
// from the recorded needs.
func (f checkResult) putNeeds(tx *keyspace.Tx) error {
	if f.published == nil || f.needs == nil {
		return nil
	}

	recorded, err := updater.ReadKey[record.Needs](tx.View, keys.Needs)
	if err != nil {
		return err
	}
	if recorded != nil && reflect.DeepEqual(*recorded, *f.needs) {
		return nil
	}

	return tx.Put(keys.Needs, *f.needs)
}

// putLook records whether the check has failed, and whether the installed release is no longer published, with the
// alerts about both.
func (f checkResult) putLook(tx *keyspace.Tx, l decide.Look) error {
	failure, err := updater.ReadKey[record.CheckFailure](tx.View, keys.CheckFailure)
	if err != nil {
		return err
	}
	if err := updater.Apply(tx, decide.NoteLook(failure, l)); err != nil {
		return err
	}

	if !f.listed {
		// The published releases are unknown, so the record of a withdrawn release stays.
		return nil
	}
	recorded, err := updater.ReadKey[record.Withdrawn](tx.View, keys.Withdrawn)
	if err != nil {
		return err
	}

	return updater.Apply(tx, decide.NoteWithdrawn(recorded, f.withdrawn, l.At))
}
