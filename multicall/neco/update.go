package neco

import (
	"errors"
	"fmt"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/decide"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

type updateCmd struct {
	Now            bool   `help:"Look for releases at once (the default)."`
	To             string `placeholder:"VERSION" help:"Update to this version, until a newer release appears."`
	AllowDowngrade bool   `help:"Allow a version that is older than that of the servers."`
	reasonFlag
}

// Run requests a check for releases or, with --to, an update to that version. It also prints the obstacles
// that it finds.
func (c updateCmd) Run(o *operator) error {
	if c.AllowDowngrade && c.To == "" {
		return console.Usage(errors.New("--allow-downgrade needs --to VERSION"))
	}
	if c.To == "" {
		o.setDetail("looks for releases")
		if err := o.update(c.requestCheck); err != nil {
			return err
		}
		return c.explainWaits(o)
	}
	if _, err := release.ParseVersion(c.To); err != nil {
		return console.Usage(err)
	}

	o.setDetail("to %s", c.To)
	target, newest, err := c.findTarget(o)
	if err != nil {
		return err
	}

	return o.commitChanges(func(s decide.Snapshot, _ time.Time) ([]updater.Change, error) {
		if release.Newer(newest, s.Release) {
			// The leader has not yet found the newest release.
			s.Release = newest
		}
		return c.requestUpdate(o, s, target)
	})
}

// requestCheck requests that the leader checks for releases. It returns an error if the leader cannot check. The
// request consists of the time and the caller.
func (updateCmd) requestCheck(tx *keyspace.Tx) error {
	config, err := updater.LoadConfig(tx.View)
	switch {
	case err != nil:
		return err
	case config.SourceFault != "":
		return console.Hint(fmt.Errorf("cannot find out where releases come from: %s", config.SourceFault),
			decide.SourceHint(config))
	case !config.HasSource():
		return hintSource(errors.New("no source of releases is configured"))
	case config.Env == record.EnvNone:
		return console.Hint(errors.New("env is none, so neco does not look for releases"),
			"neco config set env production")
	}

	return tx.Put(keys.Check, time.Now().UTC().Format(time.RFC3339Nano)+" "+console.Caller())
}

// explainWaits prints the obstacles to a check for releases and to an update: that no updater leads, that an
// update is stopped, or that updates are paused. It also prints how the last check has failed, if it has.
func (updateCmd) explainWaits(o *operator) error {
	doc, err := read(o, o.readStatus)
	if err != nil {
		return err
	}

	now := time.Now()
	if doc.Leader == nil && doc.LeaderDue.IsZero() {
		o.note("no neco-updater leads, so nothing looks for releases; on a boot server run: systemctl start neco-updater")
	}
	if f := doc.CheckFail; f != nil {
		o.note("the last check for releases failed at %s: %s", f.At.Format(time.RFC3339), f.Message)
		if f.Again.After(now) {
			o.note("if the requested check also fails, the next one is at %s", f.Again.Format(time.RFC3339))
		}
	}

	if doc.Request != nil && doc.Request.Stop {
		o.note("an update is stopped, and no other update begins before you run: neco retry, or neco recover")
	}
	if p := doc.Pause; p != nil && p.IsOn(now) {
		o.note("updates are paused; an update to a new release begins after: neco resume")
	}

	return nil
}

// findTarget looks up the version at the source of releases, since all workers would fail to get a version
// that does not exist. It returns the version with the digest of its SHA256SUMS. It also returns the newest
// version that the fleet's env accepts, or "" if there is none.
func (c updateCmd) findTarget(o *operator) (t record.Target, newest string, err error) {
	s, err := o.loadSnapshot()
	if err != nil {
		return t, "", err
	}
	source, err := newSource(s.Config)
	if err != nil {
		return t, "", err
	}
	defer source.Close()

	t.Version = c.To
	releases, err := source.Releases(o.ctx)
	if err != nil {
		return t, "", err
	}
	if best, ok := release.Choose(s.Config.Env, s.Config.TagPrefix, releases); ok {
		newest = best.Version.String()
	}

	r, err := release.Lookup(c.To, s.Config.TagPrefix, releases)
	if err != nil {
		return t, newest, err
	}

	t.Sums, err = source.Sums(o.ctx, r)
	return t, newest, err
}

// requestUpdate returns the changes that request an update to the target. It returns an error if the target
// is refused. If the target is already installed and no newer release is known, it returns the changes of
// keepInstalled, which can be none. Otherwise it also prints a note if the update must wait for a stopped
// update, for disk space or for the end of a pause.
func (c updateCmd) requestUpdate(o *operator, s decide.Snapshot, t record.Target) ([]updater.Change, error) {
	// Refusal concerns only versions that are older than that of the servers.
	if why := s.Refusal(t.Version, c.AllowDowngrade); why != "" {
		return nil, console.Hint(errors.New(why),
			"to go back anyway: neco update --to "+t.Version+" --allow-downgrade")
	}
	// A release whose files were replaced since the refusal counts as a different one.
	if refused := s.RefusalOf(t.Version); refused != nil && !record.Differ(refused.Sums, t.Sums) {
		err := fmt.Errorf("release %s is refused, because it cannot be installed: %s", t.Version, refused.Why)
		return nil, console.Hint(err, "once the release is fixed: neco update --now, then repeat this command")
	}

	r := s.Current
	isInstalled := r != nil && r.Succeeded() && release.Same(r.Version, t.Version) && !record.Differ(r.Sums, t.Sums)
	// If a newer release is known, the leader would install it unless the target is requested.
	if isInstalled && !release.Newer(s.Release, t.Version) {
		return c.keepInstalled(o, s, t), nil
	}

	if s.Current != nil && s.Current.Stop {
		o.note("an update is stopped; the requested update begins after: neco recover")
	}
	if lacks := s.Lacks(t.Version, time.Now()); len(lacks) > 0 {
		o.note("the requested update begins once there is enough disk space: %s", record.JoinLacks(lacks))
	}

	if s.Pause != nil && s.Pause.IsOn(time.Now()) {
		o.note("updates are paused; the requested update begins after: neco resume")
	}
	return c.replaceTarget(o, s, t), nil
}

// keepInstalled returns the changes for a target that is already installed. The target replaces an earlier
// request for a different version. Without such a request, keepInstalled returns no changes, and prints the
// findings.
func (c updateCmd) keepInstalled(o *operator, s decide.Snapshot, t record.Target) []updater.Change {
	if earlier := s.Target; earlier != nil && !release.Same(earlier.Version, t.Version) {
		o.note("the servers stay at %s: the requested update to %s no longer begins", t.Version, earlier.Version)
		return c.replaceTarget(o, s, t)
	}

	o.note("there is nothing to do: the last update went to %s", t.Version)
	if len(s.Degraded.Findings) > 0 {
		o.note("some servers differ from the last update; to restore them: neco repair")
	}
	for _, f := range s.Degraded.Findings {
		o.note("  %s", f)
	}
	return nil
}

// replaceTarget returns the changes that make t the requested target, instead of an earlier one. It completes t with
// data of the command and the snapshot.
func (c updateCmd) replaceTarget(o *operator, s decide.Snapshot, t record.Target) []updater.Change {
	t.Downgrade = c.AllowDowngrade
	// The request is in force until a release appears that is newer than s.Release.
	t.Passed = s.Release
	t.Who = o.audit.Who
	return updater.Replace(keys.Target, t)
}
