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

func (w *input) decodeUnitDetails(kvs []keyspace.KeyValue) (err error) {
	for _, kv := range kvs {
		below := kv.Key[len(keys.Units):]
		if unit, ok := strings.CutSuffix(below, "/ports"); ok {
			w.ports[unit], err = keyspace.Decode[[]state.Port](kv)
		} else if unit, ok := strings.CutSuffix(below, "/restored"); ok {
			w.restored[unit], err = keyspace.Decode[state.Restored](kv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *input) decodePresence(kvs []keyspace.KeyValue) error {
	leaders := leadersPrefix()
	for _, kv := range kvs {
		p, err := keyspace.Decode[state.AgentPresence](kv)
		if err != nil {
			return err
		}
		if service, leads := strings.CutPrefix(kv.Key, leaders); leads {
			w.leaders[service] = p.Unit
		} else {
			w.present[kv.Key[len(keys.Presences):]] = p
		}
	}
	return nil
}

func leadersPrefix() string { return keys.Leader(keys.ServiceLeaderName("")) }

func (w *input) isPresent(agent string) bool {
	_, present := w.present[agent]
	return present
}

func (w *input) unitView(u state.Unit) Unit {
	flow := w.workflows[u.Name]
	view := Unit{
		State: cmp.Or(flow.State, state.UnitPending), Info: stateInfo(u, flow), Life: state.UnlessAlive(u.Life),
		Trouble: w.present[state.UnitAgent(u.Name)].Trouble,
		Leader:  w.leaders[u.Service] == u.Name, Version: u.Workload.Version,
		Workload: viewWorkload(u.Status), Machine: u.Machine, PublicAddress: w.machines[u.Machine].Addresses.Public,
		Relations: w.unitRelations(u), Principal: u.Principal, Subordinates: u.Subordinates,
	}
	if u.Charm != w.services[u.Service].Charm {
		view.Charm = u.Charm
	}
	if r, waits := w.restored[u.Name]; waits && view.Info == nil {
		view.Info = &UnitStateInfo{Message: r.String()}
	}
	w.addRunning(u.Name, &view)
	for _, p := range w.ports[u.Name] {
		view.OpenPorts = append(view.OpenPorts, p.String())
	}
	if view.State != state.UnitPending && !w.isPresent(state.UnitAgent(u.Name)) {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{})
		view.Info.Last, view.State = view.State, state.UnitDown
		view.Info.Message = cmp.Or(view.Info.Message, "its agent is gone, or cannot reach the store")
	}
	return view
}

func (w *input) addRunning(unit string, view *Unit) {
	op, runs := w.ops[unit]
	if !runs || !w.isPresent(state.UnitAgent(unit)) {
		return
	}
	r := op.Running()
	view.Running = &r
	if slow := slowMessage(r, w.now); slow != "" {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{Since: r.Since})
		view.Info.Message = strings.TrimPrefix(view.Info.Message+"; "+slow, "; ")
	}
}

func stateInfo(u state.Unit, flow state.Workflow) *UnitStateInfo {
	f := flow.Failure
	if f == nil {
		return nil
	}
	return &UnitStateInfo{
		Hook: f.Hook.Name, Message: f.Message, Stderr: f.Stderr, See: f.LogCommand(u.Name), Since: f.Since, Attempts: f.Attempts,
		NextRetry: f.RetryAt, Resolved: u.Resolved, Interrupted: f.Interrupted,
	}
}

func (w *input) unitRelations(u state.Unit) map[string]UnitRelation {
	out := map[string]UnitRelation{}
	for _, r := range w.relationsOf[u.Service] {
		if !state.RelationConcerns(r, u, w.services[r.Other(u.Service).Service]) {
			continue
		}
		e, _ := r.Endpoint(u.Service)
		group, ok := out[e.Name]
		if !ok {
			group.Relations = map[string]RelationUnit{}
		}
		group.Relations[r.String()] = w.relationUnit(u, r.ID)
		group.State = WorstRelation(group.Relations)
		out[e.Name] = group
	}
	return out
}

// slowHookThreshold is how long a hook may run before the status mentions it.
const slowHookThreshold = 10 * time.Minute

// slowMessage is empty for what has not run for very long.
func slowMessage(r state.RunningHook, now time.Time) string {
	took := now.Sub(r.Since)
	if took < slowHookThreshold {
		return ""
	}
	return fmt.Sprintf("%s has been running for %s%s", r.Name, took.Truncate(time.Minute), r.HeldBy())
}
