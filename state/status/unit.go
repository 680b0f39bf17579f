package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// decodeUnitDetails decodes ports and the marks of restored units, from the keys below the units' records.
func (w *input) decodeUnitDetails(v *state.View, kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		name := strings.TrimPrefix(kv.Key, keys.Units)
		if unit, ok := strings.CutSuffix(name, "/ports"); ok {
			if err := takeRecord(v, kv, w.ports, unit); err != nil {
				return err
			}
		}
		if unit, ok := strings.CutSuffix(name, "/restored"); ok {
			if err := takeRecord(v, kv, w.restored, unit); err != nil {
				return err
			}
		}
	}

	return nil
}

// decodePresence decodes the present agents and the leaders of services, from the keys that their sessions
// hold. An agent whose record does not decode is present, since its session is live.
func (w *input) decodePresence(v *state.View, kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		p, err := keyspace.Decode[state.AgentPresence](kv)
		if err != nil && !v.Keys().Skips(err) {
			return err
		}

		if service, leads := strings.CutPrefix(kv.Key, leadersPrefix()); leads {
			w.leaders[service] = p.Unit
		} else {
			agent := strings.TrimPrefix(kv.Key, keys.Presences)
			w.present[agent] = p.Trouble
		}
	}

	return nil
}

// leadersPrefix returns the prefix of the keys of services' leaders. The service's name follows it.
func leadersPrefix() string { return keys.Leader(keys.ServiceLeaderName("")) }

// LostMessage is the message of a unit or machine whose agent is lost.
const LostMessage = "its agent is gone, or cannot reach the store"

// isPresent reports whether the agent is present.
func (w *input) isPresent(agent string) bool {
	_, present := w.present[agent]
	return present
}

// addUnit adds the unit to its service, if the service is shown, and to its relations. The version of a
// service's workload is the one that a unit has set most recently.
func (w *input) addUnit(s *Status, u *state.Unit) {
	relations := w.addRelations(s, u)
	if !w.shows(u.Service) {
		return
	}

	service := s.Services[u.Service]
	service.Units[u.Name] = w.unitView(u, relations)
	// The map of units is already shared with s. Only a new version changes the service itself.
	if u.Workload.Since.After(w.versions[u.Service]) {
		service.Version = u.Workload.Version
		w.versions[u.Service] = u.Workload.Since
		s.Services[u.Service] = service
	}
}

// unitView returns the status of a unit. A unit that is no longer pending is down if its agent is not present.
func (w *input) unitView(u *state.Unit, relations map[string]UnitRelation) Unit {
	workflow := w.workflows[u.Name]
	view := Unit{
		State:         cmp.Or(workflow.State, state.UnitPending),
		Life:          state.UnlessAlive(u.Life),
		Trouble:       w.present[state.UnitAgent(u.Name)],
		Leader:        w.leaders[u.Service] == u.Name,
		Version:       u.Workload.Version,
		Workload:      viewWorkload(u.Status),
		Machine:       u.Machine,
		PublicAddress: w.machines[u.Machine].Addresses.Public,
		Relations:     relations,
		Principal:     u.Principal,
		Subordinates:  u.Subordinates,
	}

	// A unit shows its own charm only until it runs the charm of its service.
	if u.Charm != w.services[u.Service].Charm {
		view.Charm = u.Charm
	}

	isLost := view.State != state.UnitPending && !w.isPresent(state.UnitAgent(u.Name))
	if !isLost {
		// A unit whose agent is lost waits for the agent, not for the retry of an earlier failure.
		view.Info = stateInfo(u, workflow.Failure)
	}
	// A unit that was restored from a backup waits for a check of its directory, or for an operator.
	if r, waits := w.restored[u.Name]; waits && view.Info == nil {
		view.Info = &UnitStateInfo{Message: r.String()}
	}
	if w.isWaiting(u.Name) && view.Info == nil {
		view.Info = &UnitStateInfo{Message: waitsForProvisioner}
	}
	// This sets view.Running, and adds to view.Info if the hook is slow.
	w.addRunning(u.Name, &view)

	for _, p := range w.ports[u.Name] {
		view.OpenPorts = append(view.OpenPorts, p.String())
	}

	if isLost {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{Message: LostMessage})
		view.Info.Last = view.State
		view.State = state.UnitDown
	}

	return view
}

// addRunning adds the running hook to the unit's view, with a message if the hook has been running for very long.
func (w *input) addRunning(unit string, view *Unit) {
	op, runs := w.ops[unit]
	if !runs || !w.isPresent(state.UnitAgent(unit)) {
		return
	}

	r := op.Running()
	view.Running = &r
	if slow := slowMessage(r, w.Now); slow != "" {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{Since: r.Since})
		view.Info.Message = strings.TrimPrefix(view.Info.Message+"; "+slow, "; ")
	}
}

// stateInfo returns the explanation of a unit's failure. It returns nil if f is nil.
func stateInfo(u *state.Unit, f *state.Failure) *UnitStateInfo {
	if f == nil {
		return nil
	}

	return &UnitStateInfo{
		Hook:        f.Hook.Name,
		Message:     f.Message,
		Stderr:      f.Stderr,
		Logged:      f.Logged,
		See:         f.LogCommand(u.Name),
		Since:       f.Since,
		Attempts:    f.Attempts,
		NextRetry:   f.RetryAt,
		Resolved:    u.Resolved,
		Interrupted: f.Interrupted,
	}
}

// addRelations adds the unit to the ends of its relations, and returns its relations by the names of its
// service's endpoints. Units of a service with the same states and no errors share one map, so that large
// statuses need less memory. The returned map must not be changed.
func (w *input) addRelations(s *Status, u *state.Unit) map[string]UnitRelation {
	own := map[string]UnitRelation{}
	key := u.Service // the key in w.shared, to which the loop adds the unit's state in each relation
	for _, r := range w.relationsOf[u.Service] {
		// In container scope, a subordinate unit takes part only in relations with its principal's service, or with
		// another subordinate.
		if !r.IsFor(*u, w.services[r.Other(u.Service).Service]) {
			continue
		}

		name := r.String()
		view := w.relationUnit(u, r.ID)
		s.Relations[name].Services[u.Service].Units[u.Name] = view

		e, _ := r.Endpoint(u.Service)
		group := own[e.Name]
		if group.Relations == nil {
			group.Relations = map[string]RelationUnit{}
		}
		group.Relations[name] = view
		group.State = WorstRelation(group.Relations)
		own[e.Name] = group

		key += name + view.State
		if view.Message != "" {
			// Each unit has its own errors, so a unit with errors gets a map of its own.
			key += u.Name
		}
	}

	if w.shared[key] == nil {
		w.shared[key] = own
	}
	return w.shared[key]
}

// slowHookThreshold is how long a hook must run before the status mentions it.
const slowHookThreshold = 10 * time.Minute

// slowMessage returns a message about a hook that has been running for slowHookThreshold, or "" for any other
// hook.
func slowMessage(r state.RunningHook, now time.Time) string {
	took := now.Sub(r.Since)
	if took < slowHookThreshold {
		return ""
	}
	return fmt.Sprintf("%s has been running for %s%s", r.Name, took.Truncate(time.Minute), r.HeldBy())
}
