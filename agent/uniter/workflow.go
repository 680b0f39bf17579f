package uniter

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// The states of a unit's workflow; before its install hook it has none. A failed
// hook makes it one of the error states.
const (
	installed = "installed"
	started   = "started"
	stopped   = "stopped"
	removed   = "removed" // by the remove hook of a charm that has one
)

// errorState is the workflow's state after that hook of the unit has failed;
// empty if it is one that may fail.
func errorState(kind string) string {
	switch kind {
	case hook.Install, hook.Start, hook.Stop, hook.Remove, hook.LeaderElected, hook.LeaderSettingsChanged:
		return kind + "-error"
	case hook.ConfigChanged:
		return "configure-error"
	case hook.UpgradeCharm:
		return "charm-upgrade-error"
	}
	return ""
}

// firstPlace is the queue's first place. A workflow without any has not yet had
// its start hook: the queue opens with it.
const firstPlace = 1

// expected is the workflow's state once the hook is done.
func expected(h state.Hook, w state.Workflow) string {
	switch {
	case hook.IsAsked(h):
		return w.State
	case h.Kind == hook.Install:
		return installed
	case h.Kind == hook.Stop:
		return stopped
	case h.Kind == hook.Remove:
		return removed
	case beforeStart(h.Kind) && w.NextPlace < firstPlace:
		return installed
	}
	return started
}

// beforeStart is true for hooks that may run before start as well as after it.
func beforeStart(kind string) bool {
	switch kind {
	case hook.ConfigChanged, hook.UpgradeCharm, hook.LeaderElected, hook.LeaderSettingsChanged, hook.Created:
		return true
	}
	return false
}

// done is the workflow after a hook of the unit has succeeded, or counts as
// done. seen is the version of what it was about: for config-changed of the
// configuration, for leader-settings-changed of the leader settings.
func done(w state.Workflow, h state.Hook, seen int64) state.Workflow {
	w.State, w.Failure = expected(h, w), nil
	switch h.Kind {
	case hook.Install:
		w.Restarted = true // config-changed comes before start, whatever was configured
	case hook.UpgradeCharm:
		w.UpgradeOwed, w.Restarted, w.Upgraded = false, true, true
	case hook.ConfigChanged:
		w.Restarted, w.Upgraded, w.ConfigVersion = false, false, seen
	case hook.LeaderElected:
		w.Elected = true
	case hook.LeaderSettingsChanged:
		w.Elected, w.LeaderVersion = false, seen
	case hook.Start:
		w.NextPlace = max(w.NextPlace, firstPlace)
	}
	return w
}

// deployed is the workflow after that charm was put in place of what was there.
// Its upgrade-charm is owed, unless it is the first one to be installed, or the
// one whose hooks ran last. Whatever else is, an error included, stays so.
func deployed(w state.Workflow, charm string) state.Workflow {
	if w.Charm != charm {
		w.UpgradeOwed = !neverInstalled(w)
	}
	w.Charm, w.Deploying = charm, ""
	return w
}

// backoff is the time until a hook that has failed so many times in a row is
// run again.
func backoff(attempts int) time.Duration {
	return min(5*time.Second<<min(attempts-1, 10), 5*time.Minute)
}

// failed is what is recorded of a hook that has failed, after what was recorded
// of it before. With retry it is run again by itself.
func failed(before *state.Failure, h state.Hook, p past, retry bool, now time.Time) *state.Failure {
	f := &state.Failure{Hook: h, Message: p.Failure, Stderr: p.stderr, Since: now.UTC(), Attempts: 1}
	if before != nil && before.Hook == h {
		f.Since, f.Attempts = before.Since, before.Attempts+1
	}
	if retry {
		f.RetryAt = now.Add(backoff(f.Attempts)).UTC()
	}
	return f
}
