package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/text"
)

// Info is a status in Juju 3's words, as docs/reference/status.md lists them.
type Info struct {
	Current string     `json:"current,omitempty" yaml:"current"`
	Message string     `json:"message,omitempty" yaml:"message,omitempty"`
	Since   time.Time  `json:"since,omitzero" yaml:"since,omitempty"`
	Version string     `json:"version,omitempty" yaml:"version,omitempty"`
	Life    state.Life `json:"life,omitempty" yaml:"life,omitempty"`
}

// Info returns the workload's status, or unknown if the charm has not set one.
func (w *Workload) Info() Info {
	if w == nil {
		return Info{Current: "unknown"}
	}
	return Info{Current: cmp.Or(w.Current, "unknown"), Message: w.Message, Since: w.Since}
}

// WorkloadInfo returns the status of the unit's workload. If the agent is lost, the status is unknown. If
// [Unit.WaitReason] says that a hook has failed, the status is error, even if the charm has set a different one. If the
// charm has not set one, the status follows from the unit's state.
func (u Unit) WorkloadInfo() Info {
	why, failed := u.WaitReason()
	switch {
	case u.State == state.UnitDown:
		return Info{Current: "unknown", Message: "agent lost, see: juju status", Since: u.Since()}
	case failed:
		return Info{Current: "error", Message: "hook failed: " + why, Since: u.Since()}
	case u.Workload != nil:
		return u.Workload.Info()
	case u.State == state.UnitPending && u.Running == nil:
		return Info{Current: "waiting", Message: "waiting for its machine and agent"}
	case u.State == state.UnitPending || u.State == "installed": // until the start hook
		return Info{Current: "maintenance", Message: "installing charm software"}
	}

	return Info{Current: "unknown"}
}

// AgentInfo returns the status of the unit's agent: lost, failed if the agent cannot continue, executing while a
// hook runs, allocating while the unit is pending, and otherwise idle.
func (u Unit) AgentInfo() Info {
	info := Info{Current: "idle", Version: charm.JujuVersion, Life: u.Life}

	switch {
	case u.State == state.UnitDown:
		// A unit that is down always has an Info.
		info.Current = "lost"
		info.Message = u.Info.Message
		info.Since = u.Since()
	case u.Trouble != nil:
		info.Current = "failed"
		info.Message = u.Trouble.Message
		info.Since = u.Trouble.Since
	case u.Running != nil:
		info.Current = "executing"
		info.Message = "running " + u.Running.Name
		info.Since = u.Running.Since
	case u.State == state.UnitPending:
		info.Current = "allocating"
	}

	return info
}

// StatusInfo returns the status that the leader has set for the service. If the leader has not set one,
// StatusInfo returns the worst status of the service's units. If no unit has a status that counts here, the
// status is unknown.
func (s Service) StatusInfo() Info {
	if s.Status != nil {
		return s.Status.Info()
	}

	names := slices.SortedFunc(maps.Keys(s.Units), charm.CompareUnits)
	for _, word := range []string{"error", "blocked", "maintenance", "waiting", "active"} {
		for _, name := range names {
			if w := s.Units[name].WorkloadInfo(); w.Current == word {
				return w
			}
		}
	}

	return Info{Current: "unknown"}
}

// WaitReason returns why the unit waits. failed reports whether a hook has failed and the unit waits for an
// operator or a retry. failed is false if the operator has already answered, or if the unit is down. After a failure in
// a relation, it is also false while a hook of that relation runs. After any other failure, it is also false while any
// hook runs, or if the agent has trouble. If nothing delays the unit, why names the running hook, or is the unit's state
// and life if no hook runs.
func (u Unit) WaitReason() (why string, failed bool) {
	if u.State == state.UnitDown {
		// A unit that is down always has an Info.
		return text.FirstLine(u.Info.Message), false
	}

	id, r := u.RelationInError()
	runsAgain := u.Running != nil && u.Running.Relation == id
	if id != "" && r.Resolved == "" && !runsAgain {
		return id + ": " + r.Message, true
	}

	info := u.Info
	switch {
	case u.Trouble != nil:
		return text.FirstLine(u.Trouble.Message), false
	case info != nil && info.Hook != "":
		return info.Hook + ": " + text.FirstLine(info.Message), info.Resolved == "" && u.Running == nil
	case info != nil && info.Message != "":
		return text.FirstLine(info.Message), false
	case u.Running != nil:
		return u.Running.Name + " runs", false
	}

	return WithLife(u.State, u.Life), false
}

// RelationInError returns the first relation in error, preferring one that the operator has not answered yet.
// The id is empty if no relation is in error.
func (u Unit) RelationInError() (id string, r RelationUnit) {
	for _, name := range slices.Sorted(maps.Keys(u.Relations)) {
		group := u.Relations[name].Relations
		for _, key := range slices.Sorted(maps.Keys(group)) {
			candidate := group[key]
			if candidate.State != state.RelationError {
				continue
			}

			isPreferred := r.Resolved != "" && candidate.Resolved == ""
			if id == "" || isPreferred {
				id = key
				r = candidate
			}
		}
	}

	return id, r
}

// WithLife returns the text with the life in parentheses. An empty life means alive, and WithLife then
// returns the text unchanged.
func WithLife(text string, life state.Life) string {
	if life == "" {
		return text
	}
	return strings.TrimSpace(text + " (" + string(life) + ")")
}
