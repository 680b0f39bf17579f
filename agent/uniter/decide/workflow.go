package decide

import (
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// The states of a unit's workflow, in addition to the error states of [ErrorState]. The state is empty until
// the install hook has succeeded or failed.
const (
	stateInstalled = "installed"
	stateStarted   = state.UnitStarted
	stateStopped   = "stopped"
	stateRemoved   = "removed" // the charm has a remove hook, which has run
)

// ErrorState returns the workflow's state after a hook of this kind has failed. It returns an empty string if
// such a failure does not change the state, as for update-status and the hooks of relations.
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

// firstPlace is the queue's first place. The start hook opens the queue: until it has run,
// [state.Workflow].NextPlace is lower than firstPlace.
const firstPlace = 1

// StateAfter returns the state of workflow w after hook h has succeeded. An action does not change the state.
// After a storage hook that precedes install, the state is empty. After other hooks it is the last state of the
// unit's life that the unit has reached.
func StateAfter(h state.Hook, w state.Workflow) string {
	beforeInstall := w.State == "" || w.Uninstalled
	switch {
	case hook.IsAction(h):
		return w.State
	case h.Kind == hook.Install:
		return stateInstalled
	case h.Storage != "" && beforeInstall:
		return ""
	case h.Kind == hook.Stop:
		return stateStopped
	case h.Kind == hook.Remove:
		return stateRemoved
	case mayPrecedeStart(h.Kind) && w.NextPlace < firstPlace: // start has not run
		return stateInstalled
	}

	return stateStarted
}

// mayPrecedeStart reports whether a hook of this kind can run between install and start.
func mayPrecedeStart(kind string) bool {
	switch kind {
	case hook.ConfigChanged, hook.UpgradeCharm, hook.LeaderElected, hook.LeaderSettingsChanged, hook.Created,
		hook.StorageAttached, hook.StorageDetaching:
		return true
	}
	return false
}

// WithHookDone returns the workflow after a hook of the unit has succeeded, or counts as done. seen is the
// version of the hook's subject that the hook has seen. The subject is the configuration for config-changed,
// the leader settings for leader-settings-changed, and the resources for install and upgrade-charm. For other
// hooks seen is ignored.
func WithHookDone(w state.Workflow, h state.Hook, seen int64) state.Workflow {
	w.State = StateAfter(h, w)
	w.Failure = nil
	w.Uninstalled = false

	switch h.Kind {
	case hook.Install:
		// config-changed runs before start, even if no option was ever set.
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
		w.NextPlace = max(w.NextPlace, firstPlace) // opens the queue
	}

	return w
}

// WithCharm returns the workflow after the charm with this URL was deployed. The charm's upgrade-charm hook
// becomes due, unless the unit was never installed or already had this charm. An error state stays.
func WithCharm(w state.Workflow, charm string) state.Workflow {
	if w.Charm != charm {
		w.UpgradeOwed = !neverInstalled(w)
	}
	w.Charm = charm
	w.Deploying = ""
	return w
}

// RetryDelay returns the delay before a hook is retried after the given number of failures in a row. The
// delay is 5 s after the first failure, and doubles with each further failure, up to 5 min.
func RetryDelay(failures int) time.Duration {
	doublings := max(failures, 1) - 1
	doublings = min(doublings, 10) // prevents an overflow
	return min(5*time.Second<<doublings, 5*time.Minute)
}
