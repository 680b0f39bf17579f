package uniter

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// The states of a unit's workflow; before its install hook it has none. A failed
// hook makes it one of the error states.
const (
	stateInstalled = "installed"
	stateStarted   = "started"
	stateStopped   = "stopped"
	stateRemoved   = "removed" // by the remove hook of a charm that has one
)

// errorState returns an empty string for a hook that may fail without putting the unit into
// an error state.
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

// firstPlace is the queue's first place. A workflow whose NextPlace is below it has not had
// its start hook: the queue opens with that.
const firstPlace = 1

func stateAfter(h state.Hook, w state.Workflow) string {
	switch {
	case hook.IsAction(h):
		return w.State
	case h.Kind == hook.Install:
		return stateInstalled
	case h.Kind == hook.Stop:
		return stateStopped
	case h.Kind == hook.Remove:
		return stateRemoved
	case mayPrecedeStart(h.Kind) && w.NextPlace < firstPlace:
		return stateInstalled
	}
	return stateStarted
}

func mayPrecedeStart(kind string) bool {
	switch kind {
	case hook.ConfigChanged, hook.UpgradeCharm, hook.LeaderElected, hook.LeaderSettingsChanged, hook.Created:
		return true
	}
	return false
}

// withHookDone returns the workflow after a hook of the unit has succeeded, or counts as
// done. seen is the version of the configuration for config-changed, and of the leader
// settings for leader-settings-changed.
func withHookDone(w state.Workflow, h state.Hook, seen int64) state.Workflow {
	w.State, w.Failure = stateAfter(h, w), nil
	switch h.Kind {
	case hook.Install:
		w.ConfigOwed = true // config-changed comes before start, whatever was configured
	case hook.UpgradeCharm:
		w.UpgradeOwed, w.ConfigOwed, w.ConfigOwedFirst = false, true, true
	case hook.ConfigChanged:
		w.ConfigOwed, w.ConfigOwedFirst, w.ConfigVersion = false, false, seen
	case hook.LeaderElected:
		w.Elected = true
	case hook.LeaderSettingsChanged:
		w.Elected, w.LeaderVersion = false, seen
	case hook.Start:
		w.NextPlace = max(w.NextPlace, firstPlace)
	}
	return w
}

// withCharm returns the workflow after the charm was deployed. Its upgrade-charm is owed,
// unless it is the first to be installed, or the one whose hooks ran last. An error state
// stays.
func withCharm(w state.Workflow, charm string) state.Workflow {
	if w.Charm != charm {
		w.UpgradeOwed = !neverInstalled(w)
	}
	w.Charm, w.Deploying = charm, ""
	return w
}

func retryDelay(failures int) time.Duration {
	return min(5*time.Second<<min(max(failures, 1)-1, 10), 5*time.Minute)
}

func newFailure(before *state.Failure, h state.Hook, r runRecord, retry bool, now time.Time) *state.Failure {
	f := &state.Failure{Hook: h, Message: r.Failure, Stderr: r.stderr, Since: now.UTC(), Attempts: 1}
	if before != nil && before.Hook == h {
		f.Since, f.Attempts, f.Backoff = before.Since, before.Attempts+1, before.Backoff
	}
	if !r.orphaned {
		f.Backoff++
	}
	if retry {
		f.RetryAt = now.Add(retryDelay(f.Backoff)).UTC()
	}
	return f
}
