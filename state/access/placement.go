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

// The parts of records that rights follow from. Package state has the records.
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
	logHead = logHeadShape
)

const (
	alive = "alive"
	dying = "dying"
	dead  = "dead"
)

// decode returns the record; ok is false if there is none, or it cannot be read: then nothing follows from it.
func decode[T any](value []byte) (record T, ok bool) {
	if value == nil {
		return record, false
	}
	err := json.Unmarshal(value, &record)
	return record, err == nil
}

func load[T any](p *Placement, key string) (record T, ok bool) { return decode[T](p.get(key)) }

// hosts reports whether the unit is on the machine that asks.
func (a *ask) hosts(unit string) bool {
	if unit == "" {
		return false
	}
	u, ok := load[unitRecord](a.Placement, keys.Unit(unit))
	return ok && u.Machine == a.me
}

// isPresent reports whether the machine that asks was not removed.
func (a *ask) isPresent() bool { return a.get(keys.Machine(a.me)) != nil }

// isGone reports whether there is no such unit. Its name is never given again.
func (a *ask) isGone(unit string) bool { return a.get(keys.Unit(unit)) == nil }

// unitsHere lists the units of a service on the machine that asks; of an empty one, those of all.
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

// hasService reports whether the machine that asks has a unit of the service.
func (a *ask) hasService(service string) bool {
	return service != "" && len(a.unitsHere(service)) > 0
}

func (a *ask) servicesHere() []string {
	services := map[string]bool{}
	for _, unit := range a.unitsHere("") {
		services[serviceOf(unit)] = true
	}
	return slices.Sorted(maps.Keys(services))
}

// isRelated reports whether a service of the machine that asks has a relation with that one.
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

// walks reports whether a unit of the machine that asks has a charm of the classic dialect, whose hooks
// find their way through the topology: they may see which units are in which relations.
func (a *ask) walks() bool {
	for _, unit := range a.unitsHere("") {
		u, _ := load[unitRecord](a.Placement, keys.Unit(unit))
		s, _ := load[serviceRecord](a.Placement, keys.Service(serviceOf(unit)))
		if s.Dialect == classic {
			return true
		}
		if s.HookDialect != "" || u.Charm == "" || u.Charm == s.Charm {
			continue
		}

		// The unit still runs its charm from before an upgrade. The operators' record of that charm counts, since
		// the unit's agent could name any.
		before, _ := load[serviceRecord](a.Placement, keys.Charm(u.Charm))
		if before.Dialect == classic && a.wasCharm(serviceOf(unit), s, u.Charm) {
			return true
		}
	}

	return false
}

// wasCharm reports whether the service has left that charm.
func (a *ask) wasCharm(service string, s serviceRecord, url string) bool {
	for _, kept := range s.Kept {
		if kept.Charm == url {
			return true
		}
	}
	mark, _ := load[upgradeRecord](a.Placement, keys.Upgrade(service))
	return mark.Before == url
}

// leads reports whether a unit of the machine that asks leads the service.
func (a *ask) leads(service string) bool {
	unit := a.leader(service)
	return unit != "" && serviceOf(unit) == service && a.hosts(unit)
}

func (a *ask) leader(service string) string {
	p, _ := load[presenceRecord](a.Placement, keys.Leader(keys.ServiceLeaderName(service)))
	return p.Unit
}

func (r relationRecord) has(service string) bool {
	return slices.Contains(r.Endpoints, endpoint{service})
}

func (r relationRecord) isPeer() bool { return len(r.Endpoints) == 1 }

func (a *ask) relation(id string) (relationRecord, bool) {
	return load[relationRecord](a.Placement, keys.Relations+id)
}

// isIn reports whether a service of the machine that asks is at an end of the relation.
func (a *ask) isIn(id string) bool {
	r, _ := a.relation(id)
	return slices.ContainsFunc(r.Endpoints, func(e endpoint) bool { return a.hasService(e.Service) })
}

func (a *ask) isRelationGone(id string) bool { return a.get(keys.Relations+id) == nil }

// wasIn reports whether a unit of the machine that asks has settings in a relation: it was a member.
func (a *ask) wasIn(id string) bool {
	n, _ := strconv.Atoi(id)
	return slices.ContainsFunc(a.unitsHere(""), func(unit string) bool { return a.get(keys.Settings(n, unit)) != nil })
}

// sharesPrincipal reports whether a member of a relation of container scope is on the machine that asks.
// Nobody knows that of a unit that is gone: its settings may be asked for by all in the relation.
func (a *ask) sharesPrincipal(id, unit string) bool {
	n, _ := strconv.Atoi(id)
	m, in := load[memberRecord](a.Placement, keys.Member(n, unit))
	if in && a.hosts(m.Principal) {
		return true
	}
	return a.hosts(unit) || !in && a.isGone(unit)
}

// runsCharm reports whether a unit of the machine that asks runs, or is to run, that charm, or another
// revision of it: an upgrade may come between.
func (a *ask) runsCharm(url string) bool {
	if url == "" {
		return false
	}

	name := withoutRevision(url)
	for _, unit := range a.unitsHere("") {
		u, _ := load[unitRecord](a.Placement, keys.Unit(unit))
		if withoutRevision(u.Charm) == name || a.servesCharm(serviceOf(unit), url) {
			return true
		}
	}

	return false
}

func (a *ask) servesCharm(service, url string) bool {
	s, _ := load[serviceRecord](a.Placement, keys.Service(service))
	return s.Charm != "" && withoutRevision(s.Charm) == withoutRevision(url)
}

// withoutRevision cuts the revision off a charm's URL: local:trusty/mysql of local:trusty/mysql-3.
func withoutRevision(url string) string {
	i := strings.LastIndexByte(url, '-')
	if i < 0 || !isNumber(url[i+1:]) {
		return url
	}
	return url[:i]
}

func loadSecret(value []byte, id string) (secret.Record, bool) {
	r, ok := decode[secret.Record](value)
	r.ID = id
	return r, ok
}

// manages reports whether the secret is a unit's of the machine that asks, or its service's that a unit
// there leads. A service that was deployed again under an old name has none of the old one's.
func (a *ask) manages(r secret.Record) bool {
	switch o := r.Owner; {
	case o.Unit != "":
		return o.Service == "" && a.hosts(o.Unit)
	case o.Service != "":
		return a.leads(o.Service) && a.isServices(o.Service, r.ID)
	}

	return false // the operators'
}

func (a *ask) isServices(service, id string) bool {
	index, _ := load[secretIndex](a.Placement, keys.ServiceSecrets(service))
	return slices.Contains(index.Owned, id)
}

// reads reports whether a unit of the machine that asks may read the content of the secret.
func (a *ask) reads(r secret.Record) bool {
	services := map[string]bool{r.Owner.Service: true, serviceOf(r.Owner.Unit): true}
	for _, g := range r.Grants {
		services[g.Service] = true
	}

	for service := range services {
		if service == "" {
			continue
		}
		if slices.ContainsFunc(a.unitsHere(service), func(unit string) bool { return a.unitReads(r, unit) }) {
			return true
		}
	}

	return r.ID == secret.CredentialID && slices.ContainsFunc(a.servicesHere(), func(service string) bool {
		s, _ := load[serviceRecord](a.Placement, keys.Service(service))
		return s.Trusted
	})
}

func (a *ask) unitReads(r secret.Record, unit string) bool {
	o := r.Owner
	if o.Unit == unit || o.Service != "" && o.Service == serviceOf(unit) && a.isServices(o.Service, r.ID) {
		return true
	}

	return slices.ContainsFunc(r.Grants, func(g secret.Grant) bool {
		return g.Service == serviceOf(unit) && (g.Unit == "" || g.Unit == unit) && a.holds(r.ID, g)
	})
}

// holds reports whether a grant still does: as long as its relation is there, or as the operators' list says.
func (a *ask) holds(id string, g secret.Grant) bool {
	if g.Relation != secret.NoRelation {
		return a.get(keys.Relation(g.Relation)) != nil
	}
	index, _ := load[secretIndex](a.Placement, keys.ServiceSecrets(g.Service))
	return slices.Contains(index.Granted, id)
}

// isReadBy reports whether the unit has read a secret that the machine that asks manages.
func (a *ask) isReadBy(unit string) bool {
	var owned []string
	for _, own := range a.unitsHere("") {
		index, _ := load[secretIndex](a.Placement, keys.UnitSecrets(own))
		owned = append(owned, index.Owned...)
	}
	for _, service := range a.servicesHere() {
		if a.leads(service) {
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

// consumes reports whether a unit of the machine that asks has read the secret before, whether it still may or not.
func (a *ask) consumes(r secret.Record) bool {
	for unit := range r.Consumers {
		if a.hosts(unit) {
			return true
		}
	}
	return false
}
