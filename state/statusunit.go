package state

import (
	"cmp"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

func (w *statusInput) decodeUnitDetails(kvs []keyspace.KeyValue) (err error) {
	for _, kv := range kvs {
		below := kv.Key[len(keys.Units):]
		if unit, ok := strings.CutSuffix(below, "/ports"); ok {
			w.ports[unit], err = keyspace.Decode[[]Port](kv)
		} else if unit, ok := strings.CutSuffix(below, "/restored"); ok {
			w.restored[unit], err = keyspace.Decode[Restored](kv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *statusInput) decodePresence(kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		p, err := keyspace.Decode[presence](kv)
		if err != nil {
			return err
		}
		w.present[kv.Key[len(keys.Presences):]] = p
	}
	return nil
}

func (w *statusInput) isPresent(agent string) bool {
	_, present := w.present[agent]
	return present
}

func (w *statusInput) decodeLeaders(kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		p, err := keyspace.Decode[presence](kv)
		if err != nil {
			return err
		}
		w.leaders[kv.Key[len(keys.Leader(keys.ServiceLeaderName(""))):]] = p.Unit
	}
	return nil
}

func (w *statusInput) unitView(u Unit) UnitView {
	flow := w.workflows[u.Name]
	view := UnitView{
		State: cmp.Or(flow.State, UnitPending), Info: stateInfo(u, flow), Life: unlessAlive(u.Life),
		Trouble: w.present[UnitAgent(u.Name)].Trouble,
		Leader:  w.leaders[u.Service] == u.Name, Version: u.Workload.Version,
		Workload: statusView(u.Status), Machine: u.Machine, PublicAddress: w.machines[u.Machine].Addresses.Public,
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
	if view.State != UnitPending && !w.isPresent(UnitAgent(u.Name)) {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{})
		view.Info.Last, view.State = view.State, UnitDown
		view.Info.Message = cmp.Or(view.Info.Message, "its agent is gone, or cannot reach the store")
	}
	return view
}

func (w *statusInput) addRunning(unit string, view *UnitView) {
	op, runs := w.ops[unit]
	if !runs || !w.isPresent(UnitAgent(unit)) {
		return
	}
	r := op.View()
	view.Running = &r
	if slow := r.slowMessage(w.now); slow != "" {
		view.Info = cmp.Or(view.Info, &UnitStateInfo{Since: r.Since})
		view.Info.Message = strings.TrimPrefix(view.Info.Message+"; "+slow, "; ")
	}
}

func stateInfo(u Unit, flow Workflow) *UnitStateInfo {
	f := flow.Failure
	if f == nil {
		return nil
	}
	return &UnitStateInfo{
		Hook: f.Hook.Name, Message: f.Message, Stderr: f.Stderr, See: f.logCommand(u.Name), Since: f.Since, Attempts: f.Attempts,
		NextRetry: f.RetryAt, Resolved: u.Resolved, Interrupted: f.Interrupted,
	}
}

func (w *statusInput) unitRelations(u Unit) map[string]UnitRelation {
	out := map[string]UnitRelation{}
	for _, r := range w.relationsOf[u.Service] {
		if !isRelationFor(r, u, w.services[r.Other(u.Service).Service]) {
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
