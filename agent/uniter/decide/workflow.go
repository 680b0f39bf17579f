package decide

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// The states of a unit's workflow; before its install hook it has none. A failed
// hook makes it one of the error states.
const (
	stateInstalled = "installed"
	stateStarted   = state.UnitStarted
	stateStopped   = "stopped"
	stateRemoved   = "removed" // by the remove hook of a charm that has one
)

// ErrorState returns the error state that a failed hook of the kind makes; an empty string for a hook that may fail without putting the unit into
// an error state.
func ErrorState(kind string) string {
	switch kind {
	case hook.Install, hook.Start, hook.Stop, hook.Remove, hook.LeaderElected, hook.LeaderSettingsChanged,
		hook.StorageAttached, hook.StorageDetaching, hook.SecretChanged, hook.SecretExpired, hook.SecretRotate, hook.SecretRemove:
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

// StateAfter returns the workflow's state after a hook of the unit has succeeded.
func StateAfter(h state.Hook, w state.Workflow) string {
	switch {
	case hook.IsAction(h):
		return w.State
	case h.Kind == hook.Install:
		return stateInstalled
	case h.Storage != "" && (w.State == "" || w.Uninstalled):
		return ""
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
	case hook.ConfigChanged, hook.UpgradeCharm, hook.LeaderElected, hook.LeaderSettingsChanged, hook.Created,
		hook.StorageAttached, hook.StorageDetaching:
		return true
	}
	return false
}

// WithHookDone returns the workflow after a hook of the unit has succeeded, or counts as done. seen is the
// version that the hook has seen: of the configuration for config-changed, of the leader settings for
// leader-settings-changed, of the resources for install and upgrade-charm.
func WithHookDone(w state.Workflow, h state.Hook, seen int64) state.Workflow {
	w.State = StateAfter(h, w)
	w.Failure = nil
	w.Uninstalled = false

	switch h.Kind {
	case hook.Install:
		// Config-changed comes before start, whatever was configured.
		w.ConfigOwed = true
		w.ResourcesVersion = seen
	case hook.UpgradeCharm:
		w.UpgradeOwed = false
		w.ConfigOwed = true
		w.ConfigOwedFirst = true
		w.ResourcesVersion = seen
	case hook.ConfigChanged:
		w.ConfigOwed = false
		w.ConfigOwedFirst = false
		w.ConfigVersion = seen
	case hook.LeaderElected:
		w.ToldElected = true
	case hook.LeaderSettingsChanged:
		w.ToldElected = false
		w.LeaderVersion = seen
	case hook.Start:
		w.NextPlace = max(w.NextPlace, firstPlace)
	}

	return w
}

// WithCharm returns the workflow after the charm was deployed. Its upgrade-charm is owed, unless it
// is the first to be installed, or the one whose hooks ran last. An error state stays.
func WithCharm(w state.Workflow, charm string) state.Workflow {
	if w.Charm != charm {
		w.UpgradeOwed = !neverInstalled(w)
	}
	w.Charm = charm
	w.Deploying = ""
	return w
}

// RetryDelay returns how long a hook that failed so often in a row waits for its retry: 5 s,
// doubled with each, 5 min at most.
func RetryDelay(failures int) time.Duration {
	return min(5*time.Second<<min(max(failures, 1)-1, 10), 5*time.Minute)
}
