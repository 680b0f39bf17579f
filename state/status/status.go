// Package status reads what `juju status` shows: docs/reference/status.md.
//
// It changes nothing, and shows nothing itself.
package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Options choose what is read.
type Options struct {
	Now time.Time
	// Only the services and units that one matches, with their machines and relations; none:
	// everything.
	Globs   []string
	Related bool // the units of related services are shown, too
	Secrets bool // shown to those who must see them; else hidden

	alone bool // nothing is read of related services' units
}

// Read reads the status that `juju status` shows. It reads a few lists for any number of units, and one
// record for each relation.
//
// Patterns limit the status. A service's name selects all of its units. A unit's name selects its service
// with that unit only. In relations the ends of selected services hold the selected units; other ends hold
// all of theirs.
func Read(v *state.View, o Options) (Status, error) {
	in, err := readInput(v, o)
	if err != nil {
		return Status{}, err
	}
	if !o.Secrets {
		in.hideSecrets()
	}

	s := in.buildViews()
	in.addSkipped(v.TakeDamage())
	s.Damage = in.damage
	s.Unmatched = in.globs.Unmatched(o.Globs)
	if in.chosen == nil {
		s.Provisioner = in.trouble
		return s, nil
	}

	maps.DeleteFunc(s.Relations, func(_ string, r Relation) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(r.Services)), in.shows)
	})
	return s, nil
}

// buildViews returns the views of all machines and relations, and of the selected services with their
// units.
func (w *input) buildViews() Status {
	s := Status{
		Machines:  map[string]Machine{},
		Services:  map[string]Service{},
		Relations: map[string]Relation{},
	}

	for _, m := range w.machines {
		s.Machines[m.ID] = w.machineView(m)
	}

	for _, service := range w.services {
		if w.shows(service.Name) {
			s.Services[service.Name] = w.serviceView(service)
		}
	}
	for _, r := range w.relations {
		s.Relations[r.String()] = relationView(r)
	}
	for i := range w.units {
		w.addUnit(&s, &w.units[i])
	}

	for _, r := range s.Relations {
		for name, end := range r.Services {
			end.State = WorstRelation(end.Units)
			r.Services[name] = end
		}
	}

	return s
}

// input has the parts of the records that the status shows. It does not keep whole records, since there may be
// very many.
type input struct {
	Options
	machines       map[string]state.Machine
	services       map[string]state.Service
	statuses       map[string]state.WorkloadStatus // of services
	named          map[string]bool                 // services of which there is anything
	damage         []string
	globs          Globs
	chosen         map[string]part // by service; nil: everything
	units          []state.Unit
	unitsOf        map[string][]string // their names, by service
	ports          map[string][]state.Port
	restored       map[string]state.Restored // units that wait to be compared
	workflows      map[string]condition
	ops            map[string]state.Op // by unit: what runs
	relationStates map[unitRelation]condition
	relations      []state.Relation
	relationsOf    map[string][]state.Relation // by service
	present        map[string]*state.Trouble   // by agent; nil: it has none
	leaders        map[string]string           // units, by service
	versions       map[string]time.Time        // by service: when its workload's version was said
	trouble        *state.ProvisionerTrouble   // nil: none
	shared         map[string]map[string]UnitRelation

	waiting    []state.Request // that no provisioner does, the oldest first
	otherLeads bool            // a provisioner leads that does none
}

// condition is the part of a Workflow, or of a RelationState, that is shown.
type condition struct {
	State   string         `json:"state"`
	Failure *state.Failure `json:"failure"`
}

type unitRelation struct {
	unit string
	id   int
}

// readInput reads all records that the status shows, and adds the damage that it finds among them.
func readInput(v *state.View, o Options) (*input, error) {
	w := &input{
		Options:        o,
		globs:          NewGlobs(o.Globs),
		ops:            map[string]state.Op{},
		machines:       map[string]state.Machine{},
		services:       map[string]state.Service{},
		statuses:       map[string]state.WorkloadStatus{},
		ports:          map[string][]state.Port{},
		workflows:      map[string]condition{},
		relationStates: map[unitRelation]condition{},
		relationsOf:    map[string][]state.Relation{},
		present:        map[string]*state.Trouble{},
		unitsOf:        map[string][]string{},
		named:          map[string]bool{},
		leaders:        map[string]string{},
		versions:       map[string]time.Time{},
		restored:       map[string]state.Restored{},
		shared:         map[string]map[string]UnitRelation{},
	}

	for _, read := range []func(*state.View) error{w.readServices, w.readUnits, w.readAgents, w.readMachines, w.readWaiting} {
		if err := read(v); err != nil {
			return nil, err
		}
	}

	w.findMissing()
	trouble, err := v.ProvisionerTrouble()
	if err != nil {
		return nil, err
	}

	if len(trouble.Messages) > 0 {
		w.trouble = &trouble
	}
	w.addWaiting()
	return w, nil
}

// findMissing adds to the damage each service and machine that other records name, but that has no record. A
// disk, or a hand, may have damaged the store. A service without a record is still shown if it has units.
func (w *input) findMissing() {
	missing := map[string]bool{}  // services
	machines := map[string]bool{} // without a record, but with units
	for _, u := range w.units {
		if _, there := w.services[u.Service]; !there {
			missing[u.Service] = true
			w.services[u.Service] = state.Service{Name: u.Service, Life: state.Alive}
		}
		if _, there := w.machines[u.Machine]; !there && u.Machine != "" && w.shows(u.Service) {
			machines[u.Machine] = true
		}
	}

	for _, r := range w.relations {
		for _, e := range r.Endpoints {
			if _, there := w.services[e.Service]; !there {
				missing[e.Service] = true
			}
		}
	}

	for _, id := range slices.Sorted(maps.Keys(machines)) {
		w.addDamage("the record of machine %s is missing, and it has units", id)
	}
	for _, service := range slices.Sorted(maps.Keys(missing)) {
		w.addDamage("the record of application %q is missing", service)
	}
}

func (w *input) addDamage(format string, args ...any) {
	w.damage = append(w.damage, fmt.Sprintf(format, args...))
}

// addSkipped notes the records that do not decode, by key.
func (w *input) addSkipped(damage map[string]error) {
	for _, key := range slices.Sorted(maps.Keys(damage)) {
		w.addDamage("%v", damage[key])
	}
}

// readServices reads all services and their relations. It notes as damage each relation whose record is
// missing.
func (w *input) readServices(v *state.View) error {
	kvs, err := v.Keys().List(keys.Services)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		if err := w.decodeService(v, kv); err != nil {
			return err
		}
	}

	relations, missing, err := v.RelationsIn(kvs)
	if err != nil {
		return err
	}

	w.relations = relations
	for _, id := range missing {
		w.addDamage("the record of %s is missing", state.Relation{ID: id})
	}

	for _, r := range w.relations {
		for _, e := range r.Endpoints {
			w.relationsOf[e.Service] = append(w.relationsOf[e.Service], r)
		}
	}

	return nil
}

// decodeService takes a service's record or workload status from its key. It notes the service's name even
// for keys that status does not show.
func (w *input) decodeService(v *state.View, kv keyspace.KeyValue) error {
	name, rest, below := strings.Cut(kv.Key[len(keys.Services):], "/")
	w.named[name] = true

	switch {
	case !below:
		service, err := keyspace.Decode[state.Service](kv)
		if v.Keys().Skips(err) {
			return nil
		}
		if err != nil {
			return err
		}
		service.Name = name
		w.services[name] = service
	case rest == "status":
		status, err := keyspace.Decode[state.WorkloadStatus](kv)
		if v.Keys().Skips(err) {
			return nil
		}
		if err != nil {
			return err
		}
		w.statuses[name] = status
	}

	return nil
}

// decodeUnits takes the units that the globs select from their keys, and then the ports and other details below
// them.
func (w *input) decodeUnits(v *state.View, kvs []keyspace.KeyValue) error {
	units, err := v.DecodeUnits(kvs)
	if err != nil {
		return err
	}

	units = slices.DeleteFunc(units, func(u state.Unit) bool {
		return !w.globs.Match(u.Name) && w.chosen != nil && !w.chosen[u.Service].whole
	})
	w.units = append(w.units, units...)
	for _, u := range units {
		w.unitsOf[u.Service] = append(w.unitsOf[u.Service], u.Name)
	}
	return w.decodeUnitDetails(v, kvs)
}

// decodeUniters takes the running operation, the workflow and the states of relations from the keys of units'
// agents: uniters/SERVICE/NUMBER/op, …/workflow and …/relations/ID. It skips all others.
func (w *input) decodeUniters(v *state.View, kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		parts := strings.Split(kv.Key, "/")
		if len(parts) < 4 {
			continue
		}

		var err error
		unit := parts[1] + "/" + parts[2]
		switch rest := parts[3:]; {
		case rest[0] == "op":
			err = takeRecord(v, kv, w.ops, unit)
		case rest[0] == "workflow":
			err = takeRecord(v, kv, w.workflows, unit)
		case rest[0] == "relations" && len(rest) == 2: // longer ones are of the relation's members
			id, parseErr := strconv.Atoi(rest[1])
			if parseErr == nil {
				err = takeRecord(v, kv, w.relationStates, unitRelation{unit, id})
			}
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// takeRecord puts the record into a map, unless it does not decode.
func takeRecord[K comparable, T any](v *state.View, kv keyspace.KeyValue, records map[K]T, name K) error {
	record, err := keyspace.Decode[T](kv)
	if v.Keys().Skips(err) {
		return nil
	}
	if err != nil {
		return err
	}

	records[name] = record
	return nil
}

func (w *input) machineView(m state.Machine) Machine {
	view := Machine{
		InstanceID:  m.InstanceID,
		State:       m.Status,
		Life:        state.UnlessAlive(m.Life),
		DNSName:     cmp.Or(m.Addresses.Public, m.Addresses.Private),
		Series:      m.Series,
		Agent:       m.Tools,
		Constraints: m.Constraints.String(),
		Placement:   m.Placement,
		Attempts:    m.Attempts,
		NextRetry:   m.RetryAt,
	}

	if m.Status == state.MachineError {
		view.Error = m.Message
	} else {
		view.Message = m.Message
	}
	if m.Status == state.MachineRunning && !w.isPresent(state.MachineAgent(m.ID)) {
		view.State = state.MachineDown
	}
	view.Trouble = w.present[state.MachineAgent(m.ID)]
	return view
}

// serviceView returns what the status shows of a service, except its units.
func (w *input) serviceView(s state.Service) Service {
	return Service{
		Charm:     s.Charm,
		Origin:    s.Origin.String(),
		Source:    s.Origin,
		Series:    s.Series,
		Forced:    s.ForceSeries,
		Force:     s.Force,
		Trusted:   s.Trusted,
		Dialect:   s.Dialect,
		Mark:      s.DialectMark,
		Promised:  s.JujuVersion,
		Exposed:   s.Exposed,
		Life:      state.UnlessAlive(s.Life),
		Principal: w.principalsOf(s),
		Status:    viewWorkload(w.statuses[s.Name]),
		Relations: w.relatedServices(s.Name),
		Units:     map[string]Unit{},
	}
}

// principalsOf returns the services to whose units the subordinate service s adds units of its own.
func (w *input) principalsOf(s state.Service) []string {
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

// relatedServices returns the services that are related to a service, by the name of its endpoint.
func (w *input) relatedServices(service string) map[string][]string {
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

// viewWorkload returns a workload's status as juju status shows it, or nil if it was never set.
func viewWorkload(w state.WorkloadStatus) *Workload {
	if w.Status == "" && w.Message == "" {
		return nil
	}
	return &Workload{Current: w.Status, Message: w.Message, Since: w.Since}
}

// relationView returns what the status shows of a relation, without its units.
func relationView(r state.Relation) Relation {
	view := Relation{
		Interface: r.Interface,
		Scope:     r.Scope,
		Life:      state.UnlessAlive(r.Life),
		Services:  map[string]RelationEnd{},
	}
	for _, e := range r.Endpoints {
		view.Services[e.Service] = RelationEnd{Name: e.Name, Role: e.Role, Units: map[string]RelationUnit{}}
	}
	return view
}

// relationUnit returns what the status shows of a unit in a relation. The state is start if the unit's agent
// does not know the relation yet.
func (w *input) relationUnit(u *state.Unit, id int) RelationUnit {
	st := w.relationStates[unitRelation{u.Name, id}]
	f := st.Failure
	if f == nil {
		return RelationUnit{State: cmp.Or(st.State, state.RelationStart)}
	}

	return RelationUnit{
		State: st.State,
		Message: f.Hook.Name + ": " +
			f.Message,
		Stderr:    f.Stderr,
		Logged:    f.Logged,
		See:       f.LogCommand(u.Name),
		Since:     f.Since,
		Attempts:  f.Attempts,
		NextRetry: f.RetryAt,
		Resolved:  u.ResolvedRelations[id],
	}
}
