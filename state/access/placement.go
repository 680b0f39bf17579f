package access

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"bijou/state/keys"
	"bijou/state/secret"
)

// These are the members of records on which rights depend. Package state defines the records.
type (
	unitRecord struct {
		Charm     string `json:"charm"`
		Machine   string `json:"machine"`
		Life      string `json:"life"`
		Principal string `json:"principal"`
	}
	serviceRecord struct {
		Charm       string `json:"charm"`
		Dialect     string `json:"dialect"`
		HookDialect string `json:"hook-dialect"`
		Trusted     bool   `json:"trusted"`
		Kept        []struct {
			Charm string `json:"charm"`
		} `json:"kept"`
	}
	upgradeRecord struct {
		Charm  string `json:"charm"`
		Before string `json:"before"`
	}
	relationRecord struct {
		Life      string     `json:"life"`
		Scope     string     `json:"scope"`
		Endpoints []endpoint `json:"endpoints"`
	}
	endpoint struct {
		Service string `json:"service"`
	}
	relationIndex struct {
		Other string `json:"other"` // SERVICE:NAME
	}
	memberRecord struct {
		Principal string `json:"principal"`
	}
	presenceRecord struct {
		Unit string `json:"unit"`
	}
	claimRecord struct {
		Epoch int64 `json:"epoch"`
	}
	storageRecord struct {
		Machine string `json:"machine"`
		Unit    string `json:"unit"`
		Life    string `json:"life"`
		State   string `json:"state"`
		Made    bool   `json:"made"`
	}
	machineStorage struct {
		All []string `json:"all"`
	}
	actionRecord struct {
		Unit   string `json:"unit"`
		Name   string `json:"name"`
		Status string `json:"status"`
	}
	secretIndex struct {
		Owned    []string `json:"owned"`
		Consumed []string `json:"consumed"`
		Granted  []string `json:"granted"`
	}
	blobHead struct {
		Size     int64 `json:"size"`
		Complete bool  `json:"complete"`
	}
	blobReference struct {
		Blob   string `json:"blob"`
		Output struct {
			Blob string `json:"blob"`
		} `json:"output"` // of an action
	}
	logHead = logHeadShape
)

const (
	alive = "alive"
	dying = "dying"
	dead  = "dead"
)

// decode decodes a record. ok is false if the record is absent or does not decode.
func decode[T any](value []byte) (record T, ok bool) {
	if value == nil {
		return record, false
	}
	err := json.Unmarshal(value, &record)
	return record, err == nil
}

// load reads and decodes a record.
func load[T any](p *Placement, key string) (record T, ok bool) { return decode[T](p.get(key)) }

// has reports whether the unit is on the machine, alive or not. The agent of a dead unit still reads records, until it
// has removed the unit's directory.
func (a *ask) has(unit string) bool {
	_, ok := a.unitHere(unit)
	return ok
}

// hosts reports whether the unit is on the machine and not dead. Writes of a dead unit would delay its removal.
func (a *ask) hosts(unit string) bool {
	u, ok := a.unitHere(unit)
	return ok && u.Life != dead
}

// unitHere returns the record of a unit on the machine.
func (a *ask) unitHere(unit string) (u unitRecord, ok bool) {
	if unit == "" {
		return u, false
	}
	u, ok = load[unitRecord](a.Placement, keys.Unit(unit))
	return u, ok && u.Machine == a.me
}

// isPresent reports whether the machine still exists.
func (a *ask) isPresent() bool { return a.get(keys.Machine(a.me)) != nil }

// works reports whether the machine exists and is not dead.
func (a *ask) works() bool {
	m, ok := load[machineShape](a.Placement, keys.Machine(a.me))
	return ok && m.Life != dead
}

// isGone reports whether the unit does not exist. Names of units are never used again.
func (a *ask) isGone(unit string) bool { return a.get(keys.Unit(unit)) == nil }

// unitsHere lists the units of a service on the machine. If service is empty, it lists all units on the
// machine.
func (a *ask) unitsHere(service string) (units []string) {
	all := keys.MachineUnits(a.me)
	prefix := all
	if service != "" {
		prefix += service + "/"
	}
	for key := range a.list(prefix) {
		units = append(units, strings.TrimPrefix(key, all))
	}

	slices.Sort(units)
	return units
}

// hasService reports whether the machine has a unit of the service.
func (a *ask) hasService(service string) bool {
	return service != "" && len(a.unitsHere(service)) > 0
}

// servicesHere lists the services that have units on the machine.
func (a *ask) servicesHere() []string {
	services := map[string]bool{}
	for _, unit := range a.unitsHere("") { // of all services
		services[serviceOf(unit)] = true
	}
	return slices.Sorted(maps.Keys(services))
}

// isRelated reports whether a service with units on the machine has a relation with the service.
func (a *ask) isRelated(service string) bool {
	for _, own := range a.servicesHere() {
		for _, value := range a.list(keys.ServiceRelations(own)) {
			index, ok := decode[relationIndex](value)
			if ok && strings.HasPrefix(index.Other, service+":") {
				return true
			}
		}
	}

	return false
}

const classic = "classic"

// hasClassicCharm reports whether a unit on the machine has a charm of the classic dialect. The hooks of such charms
// explore the topology, so they can see all relations and their members.
func (a *ask) hasClassicCharm() bool {
	for _, unit := range a.unitsHere("") { // of all services
		u, _ := load[unitRecord](a.Placement, keys.Unit(unit))
		s, _ := load[serviceRecord](a.Placement, keys.Service(serviceOf(unit)))
		if s.Dialect == classic {
			return true
		}
		// A dialect that the operator has set applies to every charm of the service. A unit without a charm,
		// or with the service's charm, has no other dialect.
		if s.HookDialect != "" || u.Charm == "" || u.Charm == s.Charm {
			continue
		}

		// The unit still runs the charm that it had before an upgrade. Since the unit's agent could name any
		// charm, the charm must also be in the service's own records. A charm's record has a member
		// dialect, as a service's record does.
		oldCharm, _ := load[serviceRecord](a.Placement, keys.Charm(u.Charm))
		if oldCharm.Dialect == classic && a.wasCharm(serviceOf(unit), s, u.Charm) {
			return true
		}
	}

	return false
}

// wasCharm reports whether the service ran the charm before: the charm is among its kept charms, or its last
// upgrade began with the charm.
func (a *ask) wasCharm(service string, s serviceRecord, url string) bool {
	for _, kept := range s.Kept {
		if kept.Charm == url {
			return true
		}
	}
	upgrade, _ := load[upgradeRecord](a.Placement, keys.Upgrade(service))
	return upgrade.Before == url
}

// hostsLeader reports whether a unit on the machine leads the service.
func (a *ask) hostsLeader(service string) bool {
	unit := a.leader(service)
	return unit != "" && serviceOf(unit) == service && a.hosts(unit)
}

// leader returns the unit that leads the service, or "".
func (a *ask) leader(service string) string {
	p, _ := load[presenceRecord](a.Placement, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit
}

// has reports whether the service is at an end of the relation.
func (r relationRecord) has(service string) bool {
	return slices.Contains(r.Endpoints, endpoint{service})
}

// isPeer reports whether the relation is among the units of one service.
func (r relationRecord) isPeer() bool { return len(r.Endpoints) == 1 }

// relation reads a relation. It returns false if the relation does not exist, or its record does not decode.
func (a *ask) relation(id string) (relationRecord, bool) {
	return load[relationRecord](a.Placement, keys.Relations+id)
}

// hadRelation reports whether a relation with the id exists or has existed.
func (a *ask) hadRelation(id int) bool {
	next, _ := load[int](a.Placement, keys.RelationCounter)
	return id < next
}

// isIn reports whether a service with units on the machine is at an end of the relation.
func (a *ask) isIn(id string) bool {
	r, _ := a.relation(id)
	return slices.ContainsFunc(r.Endpoints, func(e endpoint) bool { return a.hasService(e.Service) })
}

// isRelationGone reports whether the relation does not exist. Ids of relations are never used again.
func (a *ask) isRelationGone(id string) bool { return a.get(keys.Relations+id) == nil }

// wasIn reports whether a unit on the machine was a member of the relation. Such a unit has settings there.
func (a *ask) wasIn(id string) bool {
	n, _ := strconv.Atoi(id)
	return slices.ContainsFunc(a.unitsHere(""), func(unit string) bool { return a.get(keys.Settings(n, unit)) != nil })
}

// sharesPrincipal reports whether the unit, in a relation of container scope, is on the machine or shares its
// principal with a unit on the machine. It is also true if both the unit and its record as a member are gone. The
// principal of such a unit is unknown, so all units in the relation can read its settings.
func (a *ask) sharesPrincipal(id, unit string) bool {
	n, _ := strconv.Atoi(id)
	m, isMember := load[memberRecord](a.Placement, keys.Member(n, unit))
	if isMember && a.has(m.Principal) {
		return true
	}
	return a.has(unit) || !isMember && a.isGone(unit)
}

// runsCharm reports whether a unit on the machine runs the charm, or will run it. Other revisions of the
// charm also count, since the machine may have to upgrade to them.
func (a *ask) runsCharm(url string) bool {
	if url == "" {
		return false
	}

	name := withoutRevision(url)
	for _, unit := range a.unitsHere("") { // of all services
		u, _ := load[unitRecord](a.Placement, keys.Unit(unit))
		if withoutRevision(u.Charm) == name || a.servesCharm(serviceOf(unit), url) {
			return true
		}
	}

	return false
}

// servesCharm reports whether the service has the charm, or another revision of it.
func (a *ask) servesCharm(service, url string) bool {
	s, _ := load[serviceRecord](a.Placement, keys.Service(service))
	return s.Charm != "" && withoutRevision(s.Charm) == withoutRevision(url)
}

// withoutRevision returns a charm's URL without the revision: "local:trusty/mysql" for
// "local:trusty/mysql-3".
func withoutRevision(url string) string {
	i := strings.LastIndexByte(url, '-')
	if i < 0 || !isNumber(url[i+1:]) {
		return url
	}
	return url[:i]
}

// loadSecret decodes the record of the secret with the given id. It returns false if the record is absent or does not
// decode.
func loadSecret(value []byte, id string) (secret.Record, bool) {
	r, ok := decode[secret.Record](value)
	r.ID = id
	return r, ok
}

// manages reports whether a unit on the machine that is not dead owns the secret, or leads the service that owns
// it. A service that is deployed again does not own the secrets of the removed service with its name.
func (a *ask) manages(r secret.Record) bool {
	owner := r.Owner
	switch {
	case owner.Unit != "":
		// A record that names both a unit and a service is not valid.
		return owner.Service == "" && a.hosts(owner.Unit)
	case owner.Service != "":
		return a.hostsLeader(owner.Service) && a.serviceOwns(owner.Service, r.ID)
	}

	return false // operators own the secret
}

// owns reports whether a unit on the machine, alive or not, owns the secret or leads the service that owns it.
func (a *ask) owns(r secret.Record) bool {
	owner := r.Owner
	if owner.Unit != "" && a.has(owner.Unit) {
		return true
	}
	return owner.Service != "" && a.has(a.leader(owner.Service)) && a.serviceOwns(owner.Service, r.ID)
}

// serviceOwns reports whether the service's own list of secrets names the secret.
func (a *ask) serviceOwns(service, id string) bool {
	index, _ := load[secretIndex](a.Placement, keys.ServiceSecrets(service))
	return slices.Contains(index.Owned, id)
}

// reads reports whether a unit on the machine can read the content of the secret.
func (a *ask) reads(r secret.Record) bool {
	// Only units of these services can have access.
	services := map[string]bool{r.Owner.Service: true, serviceOf(r.Owner.Unit): true}
	for _, g := range r.Grants {
		services[g.Service] = true
	}

	for service := range services {
		if service == "" {
			continue
		}
		for _, unit := range a.unitsHere(service) {
			// hosts leaves out dead units.
			if a.hosts(unit) && a.unitReads(r, unit) {
				return true
			}
		}
	}

	// Units of trusted services can read the cloud's credential without a grant.
	return r.ID == secret.CredentialID && slices.ContainsFunc(a.servicesHere(), func(service string) bool {
		s, _ := load[serviceRecord](a.Placement, keys.Service(service))
		return s.Trusted
	})
}

// unitReads reports whether the unit can read the content of the secret.
func (a *ask) unitReads(r secret.Record, unit string) bool {
	if r.Owner.Unit == unit {
		return true
	}

	service := serviceOf(unit)
	if r.Owner.Service != "" && r.Owner.Service == service && a.serviceOwns(service, r.ID) {
		return true
	}

	return slices.ContainsFunc(r.Grants, func(g secret.Grant) bool {
		// A grant without a unit is for all units of the service.
		return g.Service == service && (g.Unit == "" || g.Unit == unit) && a.isGrantValid(r.ID, g)
	})
}

// isGrantValid reports whether a grant of the secret is still valid. A grant is valid while its relation
// exists. A grant by operators has no relation, and is valid while the service's list names the secret as granted.
func (a *ask) isGrantValid(id string, g secret.Grant) bool {
	if g.Relation != secret.NoRelation {
		return a.get(keys.Relation(g.Relation)) != nil
	}
	index, _ := load[secretIndex](a.Placement, keys.ServiceSecrets(g.Service))
	return slices.Contains(index.Granted, id)
}

// isReadBy reports whether the unit has read a secret that the machine manages.
func (a *ask) isReadBy(unit string) bool {
	var owned []string
	for _, own := range a.unitsHere("") { // of all services
		index, _ := load[secretIndex](a.Placement, keys.UnitSecrets(own))
		owned = append(owned, index.Owned...)
	}
	for _, service := range a.servicesHere() {
		if a.hostsLeader(service) {
			index, _ := load[secretIndex](a.Placement, keys.ServiceSecrets(service))
			owned = append(owned, index.Owned...)
		}
	}

	return slices.ContainsFunc(owned, func(id string) bool {
		r, ok := loadSecret(a.get(keys.Secret(id)), id)
		_, reads := r.Consumers[unit]
		return ok && reads && a.manages(r)
	})
}

// consumes reports whether a unit on the machine has read the secret before, even if it can no longer read
// it.
func (a *ask) consumes(r secret.Record) bool {
	for unit := range r.Consumers {
		if a.has(unit) {
			return true
		}
	}
	return false
}
