// Package status reads the status of an environment, which `juju status` shows as in
// docs/reference/status.md.
//
// It does not change the environment, and prints nothing itself.
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

// Options select the parts of the status that are read.
type Options struct {
	Now time.Time
	// Globs limit the status to the services and units that match a pattern, with their machines and
	// relations. Without patterns, the status covers everything.
	Globs   []string
	Related bool // also show the units of related services
	Secrets bool // do not hide secrets in messages

	alone bool // do not read the units of related services
}

// Read reads the status that `juju status` shows. It reads one record for each relation. Without patterns, it
// also reads a few lists and single records, however many units there are. The status names the records that do
// not decode, so v does not report them.
//
// Patterns limit the status. A pattern that matches a service selects all of its units. A pattern that matches a
// unit selects the unit's service with only that unit. In relations, the ends of selected services have only the
// selected units. All other ends have all of their units. Without patterns, the status also shows the trouble of
// the provisioner.
func Read(v *state.View, o Options) (Status, error) {
	w, err := readInput(v, o)
	if err != nil {
		return Status{}, err
	}
	if !o.Secrets {
		w.hideAllSecrets()
	}

	s := w.buildViews()
	w.addSkipped(v.TakeDamage())
	s.Damage = w.damage
	s.Unmatched = w.globs.Unmatched(o.Globs)
	// Without patterns, nothing is left out.
	if w.chosen == nil {
		s.Provisioner = w.trouble
		return s, nil
	}

	// Leave out relations that have no selected service at either end.
	maps.DeleteFunc(s.Relations, func(_ string, r Relation) bool {
		services := slices.Collect(maps.Keys(r.Services))
		return !slices.ContainsFunc(services, w.shows)
	})
	return s, nil
}

// buildViews returns the views of the machines and relations that were read, and of the shown services with
// their units.
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
		// A unit of a service that is not shown is added only to its relations.
		w.addUnit(&s, &w.units[i])
	}

	// The state of an end depends on all of its units.
	for _, r := range s.Relations {
		for name, end := range r.Services {
			end.State = WorstRelation(end.Units)
			r.Services[name] = end
		}
	}

	return s
}

// input has the parts of the records that the status shows. It does not keep whole records, since an
// environment may have very many of them.
type input struct {
	Options
	machines       map[string]state.Machine
	services       map[string]state.Service
	statuses       map[string]state.WorkloadStatus // the statuses that units have set for services, by service
	named          map[string]bool                 // the services that have any record
	damage         []string
	globs          Globs
	chosen         map[string]part // the parts to read, by service; nil means everything
	units          []state.Unit
	unitsOf        map[string][]string       // the names of units, by service
	ports          map[string][]state.Port   // by unit
	restored       map[string]state.Restored // the marks of restored units, by unit
	workflows      map[string]condition      // by unit
	ops            map[string]state.Op       // the running hooks, by unit
	relationStates map[unitRelation]condition
	relations      []state.Relation
	relationsOf    map[string][]state.Relation        // by service
	present        map[string]*state.Trouble          // the present agents with their trouble, which can be nil
	leaders        map[string]string                  // the leading units, by service
	versions       map[string]time.Time               // when a unit last set the workload's version, by service
	trouble        *state.ProvisionerTrouble          // nil if there is none
	shared         map[string]map[string]UnitRelation // the maps that addRelations has returned, by their content

	waiting     []state.Request // requests that no provisioner carries out, the oldest first
	leaderIsOld bool            // the leading provisioner runs an older binary, which does not carry out requests
}

// condition is the part of a Workflow or RelationState that is shown.
type condition struct {
	State   string         `json:"state"`
	Failure *state.Failure `json:"failure"`
}

type unitRelation struct {
	unit string
	id   int
}

// readInput reads all records that the status shows, and adds missing records to the damage. The errors of
// records that do not decode stay in v.
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

	// Later steps need the results of earlier ones.
	steps := []func(*state.View) error{w.readServices, w.readUnits, w.readAgents, w.readMachines, w.readWaiting}
	for _, read := range steps {
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
	// This adds to w.trouble.
	w.addWaiting()
	return w, nil
}

// findMissing adds to the damage each service and machine that other records name, but whose own record is
// missing or does not decode. It only considers machines of shown units. A store in this state was damaged by a
// disk or by hand. A service without a record can still be shown if it has units.
func (w *input) findMissing() {
	missingServices := map[string]bool{}
	missingMachines := map[string]bool{}
	for _, u := range w.units {
		if _, exists := w.services[u.Service]; !exists {
			missingServices[u.Service] = true
			// This stands in for the record, so that the status can show the service and its units.
			w.services[u.Service] = state.Service{Name: u.Service, Life: state.Alive}
		}

		_, exists := w.machines[u.Machine]
		if !exists && u.Machine != "" && w.shows(u.Service) {
			missingMachines[u.Machine] = true
		}
	}

	for _, r := range w.relations {
		for _, e := range r.Endpoints {
			if _, exists := w.services[e.Service]; !exists {
				missingServices[e.Service] = true
			}
		}
	}

	for _, id := range slices.Sorted(maps.Keys(missingMachines)) {
		w.addDamage("the record of machine %s is missing, and it has units", id)
	}
	for _, service := range slices.Sorted(maps.Keys(missingServices)) {
		w.addDamage("the record of application %q is missing", service)
	}
}

// addDamage adds the description of one damaged or missing record.
func (w *input) addDamage(format string, args ...any) {
	w.damage = append(w.damage, fmt.Sprintf(format, args...))
}

// addSkipped adds to the damage the records that do not decode. damage has their errors, by key.
func (w *input) addSkipped(damage map[string]error) {
	for _, key := range slices.Sorted(maps.Keys(damage)) {
		w.addDamage("%v", damage[key])
	}
}

// readServices reads all services and their relations. It adds each relation without a record to the damage.
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

// decodeService decodes a service's record, or the status that units have set for the service. It ignores the
// value of any other key below the service, but adds the service's name to w.named for each key.
func (w *input) decodeService(v *state.View, kv keyspace.KeyValue) error {
	name, subkey, hasSubkey := strings.Cut(kv.Key[len(keys.Services):], "/")
	w.named[name] = true

	switch {
	case !hasSubkey:
		service, err := keyspace.Decode[state.Service](kv)
		if v.Keys().Skips(err) {
			return nil
		}
		if err != nil {
			return err
		}
		service.Name = name
		w.services[name] = service
	case subkey == "status":
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

// decodeUnits decodes the units among the records, and the ports and other details below their keys. Of a service
// whose part is not whole, it keeps only the units that a pattern matches. Without patterns, it keeps all units.
func (w *input) decodeUnits(v *state.View, kvs []keyspace.KeyValue) error {
	units, err := v.DecodeUnits(kvs)
	if err != nil {
		return err
	}

	units = slices.DeleteFunc(units, func(u state.Unit) bool {
		// Match also records which patterns have matched.
		isMatched := w.globs.Match(u.Name)
		return !isMatched && w.chosen != nil && !w.chosen[u.Service].whole
	})
	w.units = append(w.units, units...)
	for _, u := range units {
		w.unitsOf[u.Service] = append(w.unitsOf[u.Service], u.Name)
	}
	return w.decodeUnitDetails(v, kvs)
}

// decodeUniters decodes the running operation, the workflow and the states of relations, from the keys of
// units' agents: uniters/SERVICE/NUMBER/op, …/workflow and …/relations/ID. It skips all other keys.
func (w *input) decodeUniters(v *state.View, kvs []keyspace.KeyValue) error {
	for _, kv := range kvs {
		parts := strings.Split(kv.Key, "/")
		if len(parts) < 4 {
			continue
		}

		if err := w.decodeUniter(v, kv, parts[1]+"/"+parts[2], parts[3:]); err != nil {
			return err
		}
	}

	return nil
}

// decodeUniter decodes one record of a unit's agent. rest has the parts of the record's key below the unit.
func (w *input) decodeUniter(v *state.View, kv keyspace.KeyValue, unit string, rest []string) error {
	switch rest[0] {
	case "op":
		return takeRecord(v, kv, w.ops, unit)
	case "workflow":
		return takeRecord(v, kv, w.workflows, unit)
	case "relations":
		// Longer keys belong to the relation's members.
		if len(rest) != 2 {
			return nil
		}
		id, err := strconv.Atoi(rest[1])
		if err != nil {
			return nil
		}
		return takeRecord(v, kv, w.relationStates, unitRelation{unit, id})
	}

	return nil
}

// takeRecord decodes the record, and adds it to records under the given name. It skips a record that does not
// decode.
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

// machineView returns the status of a machine. A machine that runs is down if its agent is not present.
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

// serviceView returns the status of a service, without its units.
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

// principalsOf returns the principal services of a subordinate service, sorted. It returns none for any other
// service.
func (w *input) principalsOf(s state.Service) []string {
	if !s.Subordinate {
		return nil
	}

	var names []string
	for _, r := range w.relationsOf[s.Name] {
		other := r.Other(s.Name).Service
		isPrincipal := !r.IsPeer() && !w.services[other].Subordinate
		if r.Scope == charm.Container && isPrincipal {
			names = append(names, other)
		}
	}

	slices.Sort(names)
	return slices.Compact(names)
}

// relatedServices returns the services that are related to a service, by the names of the service's own
// endpoints. A peer relation relates the service to itself.
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

// relationView returns the status of a relation, without its units.
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

// relationUnit returns the status of a unit in a relation. The state is start if the unit's agent has not
// recorded the relation yet.
func (w *input) relationUnit(u *state.Unit, id int) RelationUnit {
	recorded := w.relationStates[unitRelation{u.Name, id}]
	f := recorded.Failure
	if f == nil {
		return RelationUnit{State: cmp.Or(recorded.State, state.RelationStart)}
	}

	view := RelationUnit{
		State:     recorded.State,
		Message:   f.Hook.Name + ": " + f.Message,
		Stderr:    f.Stderr,
		Logged:    f.Logged,
		See:       f.LogCommand(u.Name),
		Since:     f.Since,
		Attempts:  f.Attempts,
		NextRetry: f.RetryAt,
		Resolved:  u.ResolvedRelations[id],
	}
	if !w.isPresent(state.UnitAgent(u.Name)) {
		// Without its agent, nothing retries the hook.
		view.NextRetry = time.Time{}
	}
	return view
}
