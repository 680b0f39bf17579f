package state

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Status collects what `juju status` shows, as of now, with secrets hidden. It reads a handful
// of lists, however many units there are, and one record for each relation.
func (v *View) Status(now time.Time) (Status, error) {
	return v.collectStatus(now, (*statusInput).hideSecrets)
}

// StatusWithSecrets is Status for those who must see them.
func (v *View) StatusWithSecrets(now time.Time) (Status, error) {
	return v.collectStatus(now, func(*statusInput) {})
}

func (v *View) collectStatus(now time.Time, prepare func(*statusInput)) (Status, error) {
	w, err := v.readStatusInput(now)
	if err != nil {
		return Status{}, err
	}
	prepare(w)
	s := Status{
		Machines: map[string]MachineView{}, Services: map[string]ServiceView{}, Relations: map[string]RelationView{},
	}
	for _, m := range w.machines {
		s.Machines[m.ID] = w.machineView(m)
	}
	for _, sv := range w.services {
		s.Services[sv.Name] = w.serviceView(sv)
	}
	for _, u := range w.units {
		s.Services[u.Service].Units[u.Name] = w.unitView(u)
	}
	for _, r := range w.relations {
		s.Relations[r.String()] = w.relationView(r)
	}
	s.Provisioner = w.trouble
	return s, nil
}

type statusInput struct {
	now            time.Time
	machines       map[string]Machine
	services       map[string]Service
	statuses       map[string]WorkloadStatus // of services
	units          []Unit
	ports          map[string][]Port
	restored       map[string]Restored // units that wait to be compared
	workflows      map[string]Workflow
	ops            map[string]Op                    // by unit: what runs
	relationStates map[string]map[int]RelationState // by unit
	relations      []Relation
	relationsOf    map[string][]Relation // by service
	present        map[string]presence   // by agent
	unitsOf        map[string][]Unit     // by service
	leaders        map[string]string     // units, by service
	trouble        *ProvisionerTrouble   // nil: none
}

func (v *View) readStatusInput(now time.Time) (*statusInput, error) {
	w := &statusInput{
		now: now, ops: map[string]Op{},
		machines: map[string]Machine{}, services: map[string]Service{}, statuses: map[string]WorkloadStatus{},
		ports: map[string][]Port{}, workflows: map[string]Workflow{}, relationStates: map[string]map[int]RelationState{},
		relationsOf: map[string][]Relation{}, present: map[string]presence{}, unitsOf: map[string][]Unit{},
		leaders: map[string]string{}, restored: map[string]Restored{},
	}
	for _, part := range []struct {
		prefix string
		take   func(kvs []keyspace.KeyValue) error
	}{
		{keys.Services, w.decodeServices},
		{keys.Units, w.decodeUnits},
		{keys.Uniters, w.decodeUniters},
		{keys.Presences, w.decodePresence},
		{keys.Leader(keys.ServiceLeaderName("")), w.decodeLeaders},
	} {
		kvs, err := v.keys.List(part.prefix)
		if err != nil {
			return nil, err
		}
		if err := part.take(kvs); err != nil {
			return nil, err
		}
	}
	return w, v.readRest(w)
}

func (v *View) readRest(w *statusInput) error {
	machines, err := v.Machines()
	if err != nil {
		return err
	}
	trouble, err := v.ProvisionerTrouble()
	if err != nil {
		return err
	}
	if len(trouble.Messages) > 0 {
		w.trouble = &trouble
	}
	for _, m := range machines {
		w.machines[m.ID] = m
	}
	if w.relations, err = v.Relations(); err != nil {
		return err
	}
	for _, r := range w.relations {
		for _, e := range r.Endpoints {
			w.relationsOf[e.Service] = append(w.relationsOf[e.Service], r)
		}
	}
	return nil
}

func (w *statusInput) decodeServices(kvs []keyspace.KeyValue) (err error) {
	for _, kv := range kvs {
		name, rest, below := strings.Cut(kv.Key[len(keys.Services):], "/")
		switch {
		case !below:
			s, derr := keyspace.Decode[Service](kv)
			s.Name, err = name, derr
			w.services[name] = s
		case rest == "status":
			w.statuses[name], err = keyspace.Decode[WorkloadStatus](kv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *statusInput) decodeUnits(kvs []keyspace.KeyValue) (err error) {
	if w.units, err = decodeUnits(kvs); err != nil {
		return err
	}
	for _, u := range w.units {
		w.unitsOf[u.Service] = append(w.unitsOf[u.Service], u)
	}
	return w.decodeUnitDetails(kvs)
}

// decodeUniters skips all members, which a status does not show.
func (w *statusInput) decodeUniters(kvs []keyspace.KeyValue) (err error) {
	for _, kv := range kvs {
		parts := strings.Split(kv.Key, "/") // uniters, service, number, ...
		if len(parts) < 4 {
			continue
		}
		unit := parts[1] + "/" + parts[2]
		switch {
		case parts[3] == "op":
			w.ops[unit], err = keyspace.Decode[Op](kv)
		case parts[3] == "workflow":
			w.workflows[unit], err = keyspace.Decode[Workflow](kv)
		case len(parts) == 5:
			err = w.decodeRelationState(unit, parts[4], kv)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (w *statusInput) decodeRelationState(unit, number string, kv keyspace.KeyValue) (err error) {
	id, ok := keys.CutInt(number, "")
	if !ok {
		return nil
	}
	if w.relationStates[unit] == nil {
		w.relationStates[unit] = map[int]RelationState{}
	}
	w.relationStates[unit][id], err = keyspace.Decode[RelationState](kv)
	return err
}

// workloadVersion is that of the unit that was the last to say one.
func (w *statusInput) workloadVersion(service string) string {
	var newest WorkloadVersion
	for _, u := range w.unitsOf[service] {
		if u.Workload.Since.After(newest.Since) {
			newest = u.Workload
		}
	}
	return newest.Version
}

func (w *statusInput) machineView(m Machine) MachineView {
	view := MachineView{
		InstanceID: m.InstanceID, State: m.Status, Life: unlessAlive(m.Life),
		DNSName: cmp.Or(m.Addresses.Public, m.Addresses.Private), Series: m.Series, Agent: m.Tools,
		Constraints: m.Constraints.String(), Placement: m.Placement,
		Message: m.Message, Attempts: m.Attempts, NextRetry: m.RetryAt,
	}
	if m.Status == MachineError {
		view.Message, view.Error = "", m.Message
	}
	if m.Status == MachineRunning && !w.isPresent(MachineAgent(m.ID)) {
		view.State = MachineDown
	}
	view.Trouble = w.present[MachineAgent(m.ID)].Trouble
	return view
}

func (w *statusInput) serviceView(s Service) ServiceView {
	return ServiceView{
		Charm: s.Charm, Origin: s.Origin.String(), Version: w.workloadVersion(s.Name), Series: s.Series, Forced: s.ForceSeries, Force: s.Force,
		Dialect: s.Dialect, Mark: s.DialectMark, Promised: s.JujuVersion, Exposed: s.Exposed, Life: unlessAlive(s.Life),
		Principal: w.principalsOf(s), Status: statusView(w.statuses[s.Name]), Relations: w.relatedServices(s.Name), Units: map[string]UnitView{},
	}
}

func (w *statusInput) principalsOf(s Service) []string {
	var names []string
	for _, r := range w.relationsOf[s.Name] {
		other := r.Other(s.Name).Service
		if s.Subordinate && r.Scope == charm.Container && !r.IsPeer() && !w.services[other].Subordinate {
			names = append(names, other)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func (w *statusInput) relatedServices(service string) map[string][]string {
	names := map[string][]string{}
	for _, r := range w.relationsOf[service] {
		e, _ := r.Endpoint(service)
		names[e.Name] = append(names[e.Name], r.Other(service).Service)
	}
	for name := range names {
		slices.Sort(names[name])
	}
	return names
}

func statusView(w WorkloadStatus) *StatusView {
	if w.Status == "" && w.Message == "" {
		return nil
	}
	return &StatusView{Current: w.Status, Message: w.Message, Since: w.Since}
}

func (w *statusInput) relationView(r Relation) RelationView {
	view := RelationView{
		Interface: r.Interface, Scope: r.Scope, Life: unlessAlive(r.Life), Services: map[string]RelationEnd{},
	}
	for _, e := range r.Endpoints {
		end := RelationEnd{Name: e.Name, Role: e.Role, Units: map[string]RelationUnit{}}
		for _, u := range w.unitsOf[e.Service] {
			if !isRelationFor(r, u, w.services[r.Other(e.Service).Service]) {
				continue
			}
			end.Units[u.Name] = w.relationUnit(u, r.ID)
		}
		end.State = WorstRelation(end.Units)
		view.Services[e.Service] = end
	}
	return view
}

// relationUnit is in state start if its agent knows nothing of the relation.
func (w *statusInput) relationUnit(u Unit, id int) RelationUnit {
	st := w.relationStates[u.Name][id]
	f := st.Failure
	if f == nil {
		return RelationUnit{State: cmp.Or(st.State, RelationStart)}
	}
	return RelationUnit{
		State: st.State, Message: f.Hook.Name + ": " + f.Message, Stderr: f.Stderr, See: f.logCommand(u.Name), Since: f.Since, Attempts: f.Attempts,
		NextRetry: f.RetryAt, Resolved: u.ResolvedRelations[id],
	}
}
