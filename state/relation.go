package state

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// Relation is a relation between two services, or a peer relation among the units of a service.
type Relation struct {
	ID        int         `json:"-"`
	Interface string      `json:"interface"`
	Scope     charm.Scope `json:"scope"`
	Life      Life        `json:"life"`
	Endpoints []Endpoint  `json:"endpoints"` // the provider first; a peer relation has only one
	Since     time.Time   `json:"since,omitzero"`
}

// Endpoint is one service's end of a relation.
type Endpoint struct {
	Service string     `json:"service"`
	Name    string     `json:"name"` // the relation's name in that service's charm
	Role    charm.Role `json:"role"`
}

// String returns the endpoint as operators write it: "wordpress:db".
func (e Endpoint) String() string { return e.Service + ":" + e.Name }

// String returns the relation's name in status and logs: "relation-3".
func (r Relation) String() string { return "relation-" + strconv.Itoa(r.ID) }

// Endpoint returns the service's endpoint in the relation; ok is false if the service is not part of the
// relation.
func (r Relation) Endpoint(service string) (e Endpoint, ok bool) {
	i := slices.IndexFunc(r.Endpoints, func(e Endpoint) bool { return e.Service == service })
	if i < 0 {
		return Endpoint{}, false
	}
	return r.Endpoints[i], true
}

// Other returns the endpoint at the other end of the relation, as seen from the service. In a peer relation,
// it returns the service's own endpoint.
func (r Relation) Other(service string) Endpoint {
	for _, e := range r.Endpoints {
		if e.Service != service {
			return e
		}
	}
	return r.Endpoints[0]
}

// IsPeer reports whether the relation is among the units of one service.
func (r Relation) IsPeer() bool { return len(r.Endpoints) == 1 }

// relationIndex is the short record of a relation below each of its services. It is enough to detect a second
// relation between the same endpoints. It repeats the relation's Life, so that a watcher of the service sees
// when Life changes, without watching everything that the members write.
type relationIndex struct {
	Name  string `json:"name"`            // the name of this service's endpoint
	Other string `json:"other,omitempty"` // the other endpoint, as Endpoint.String returns it; empty for peers
	Life  Life   `json:"life,omitempty"`  // empty means alive
}

// AddRelation adds a relation between two endpoints, as InferEndpoints returns them. It returns ErrExists if
// the endpoints are already related, ErrNotFound if a service or endpoint does not exist, and ErrDead if a service
// is dying. It returns a different error if the endpoints do not fit together, or if one has reached its limit.
func (tx *Tx) AddRelation(eps ...Endpoint) (_ Relation, err error) {
	if len(eps) != 2 {
		return Relation{}, fmt.Errorf("cannot add relation: want two endpoints, got %d", len(eps))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add relation between %q and %q: %w", eps[0], eps[1], err)
		}
	}()

	a, errA := tx.findEndpoint(eps[0])
	b, errB := tx.findEndpoint(eps[1])
	if err := errors.Join(errA, errB); err != nil {
		return Relation{}, err
	}
	if !a.canRelateTo(b) {
		return Relation{}, errors.New("the endpoints must have opposite roles and the same interface, and belong to different applications")
	}

	// Run all checks, so that the error names every obstacle at once.
	relatedErr := tx.checkUnrelated(a.Endpoint, b.Endpoint)
	limitErrA := tx.checkLimit(a)
	limitErrB := tx.checkLimit(b)
	if err := errors.Join(checkContainer(a, b), relatedErr, limitErrA, limitErrB); err != nil {
		return Relation{}, err
	}

	// The provider comes first.
	if a.Role != charm.Provides {
		a, b = b, a
	}

	return tx.insertRelation(Relation{
		Interface: a.interfaceName,
		Scope:     jointScope(a.scope, b.scope),
		Life:      Alive,
		Endpoints: []Endpoint{a.Endpoint, b.Endpoint},
	})
}

// jointScope returns the scope of a relation between endpoints with the scopes a and b: container if one of
// them is container.
func jointScope(a, b charm.Scope) charm.Scope {
	if a == charm.Container || b == charm.Container {
		return charm.Container
	}
	return charm.Global
}

// checkContainer refuses a relation of container scope between services whose units cannot share a machine.
func checkContainer(a, b charmEndpoint) error {
	switch {
	case jointScope(a.scope, b.scope) != charm.Container:
		return nil
	case a.series != b.series:
		return fmt.Errorf(
			"the relation has container scope, and the applications have different series, %q and %q",
			a.series, b.series,
		)
	case !a.subordinate && !b.subordinate:
		return errors.New("the relation has container scope, and neither application is a subordinate")
	}

	return nil
}

// checkUnrelated returns an [ErrExists] if the endpoints have a relation, and an ErrExists that is also an [ErrDead] if
// that relation is ending or has no record.
func (tx *Tx) checkUnrelated(a, b Endpoint) error {
	indexes, err := tx.relationIndexes(a.Service)
	if err != nil {
		return err
	}

	for id, index := range indexes {
		if index.Name != a.Name || index.Other != b.String() {
			continue
		}

		r, err := tx.Relation(id)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		if err == nil && r.Life == Alive {
			return refuse(ErrExists, "they are already related")
		}
		// A relation and its index entries are removed in one commit. An entry without a relation is damage, and
		// a second relation between the endpoints would hide it.
		return refuse(fmt.Errorf("%w: %w", ErrExists, ErrDead), "their relation is still being destroyed: wait until it is gone")
	}

	return nil
}

// checkLimit returns an error if the endpoint already has as many relations as its charm allows.
func (tx *Tx) checkLimit(d charmEndpoint) error {
	if d.limit == 0 {
		return nil
	}

	indexes, err := tx.relationIndexes(d.Service)
	if err != nil {
		return err
	}

	var others []string
	for _, id := range slices.Sorted(maps.Keys(indexes)) {
		if indexes[id].Name == d.Name {
			others = append(others, indexes[id].Other)
		}
	}
	if len(others) < d.limit {
		return nil
	}

	return fmt.Errorf("the charm of %q has a limit of %d for %q, and already has a relation with %s (a relation that is being removed also counts)",
		d.Service, d.limit, d.Name, strings.Join(others, ", "))
}

// addPeerRelations adds the charm's peer relations that the service does not have yet.
func (tx *Tx) addPeerRelations(service string, c Charm) error {
	existing, err := tx.relationNames(service)
	if err != nil {
		return err
	}

	for _, rel := range c.Meta.Relations() {
		if rel.Role != charm.Peers || slices.Contains(existing, rel.Name) {
			continue
		}

		_, err := tx.insertRelation(Relation{
			Interface: rel.Interface,
			Scope:     rel.Scope,
			Life:      Alive,
			Endpoints: []Endpoint{{Service: service, Name: rel.Name, Role: rel.Role}},
		})
		if err != nil {
			return err
		}
	}

	return nil
}

// insertRelation writes the records of a new relation, with the next id, and returns the relation.
func (tx *Tx) insertRelation(r Relation) (_ Relation, err error) {
	if r.ID, err = tx.keys.NextNumber(keys.RelationCounter); err != nil {
		return Relation{}, err
	}
	r.Since = time.Now().UTC().Round(0) // Round removes the monotonic time, which is not stored
	return r, tx.putRelation(r)
}

// rewriteRelation is putRelation for an existing relation, which the transaction must have read. It keeps fields
// that this binary does not know.
func (tx *Tx) rewriteRelation(r Relation) error {
	var indexKeys []string
	for _, e := range r.Endpoints {
		indexKeys = append(indexKeys, keys.ServiceRelation(e.Service, r.ID))
	}
	if err := tx.keys.Prefetch(keyspace.Exactly(indexKeys...)); err != nil {
		return err
	}

	// Put keeps the unknown fields of a record only if the transaction has read the record.
	for _, key := range indexKeys {
		if _, _, err := tx.keys.Get(key); err != nil {
			return err
		}
	}

	return tx.putRelation(r)
}

// putRelation writes a relation's record, and its index entry below each of its services.
func (tx *Tx) putRelation(r Relation) error {
	for _, e := range r.Endpoints {
		index := relationIndex{Name: e.Name, Life: UnlessAlive(r.Life)}
		if !r.IsPeer() {
			index.Other = r.Other(e.Service).String()
		}
		if err := tx.keys.Put(keys.ServiceRelation(e.Service, r.ID), index); err != nil {
			return err
		}
	}

	return tx.keys.Put(keys.Relation(r.ID), r)
}

// Relation reads a relation. It returns ErrNotFound if there is no such relation.
func (v *View) Relation(id int) (Relation, error) {
	r, err := keyspace.LoadExisting[Relation](v.keys, keys.Relation(id), "relation-%d not found", id)
	r.ID = id
	return r, err
}

// Relations reads all relations, sorted by id. It finds them by the services' indexes, since a list of all
// keys below relations/ would read all settings.
func (v *View) Relations() ([]Relation, error) {
	kvs, err := v.keys.List(keys.Services)
	if err != nil {
		return nil, err
	}
	return v.loadRelations(relationIDs(kvs))
}

// RelationsIn is like Relations, for callers that have already read the keys of all services. It returns the
// ids of relations without a record in missing, instead of an error.
func (v *View) RelationsIn(services []keyspace.KeyValue) (all []Relation, missing []int, err error) {
	return v.findRecords(relationIDs(services))
}

// relationIDs returns the ids of the relations in the index entries among the keys of services. A relation
// between two services occurs twice.
func relationIDs(services []keyspace.KeyValue) (ids []int) {
	for _, kv := range services {
		// rest is empty in the key of a service's own record.
		service, rest, _ := strings.Cut(kv.Key[len(keys.Services):], "/")
		if id, ok := keys.CutInt(kv.Key, keys.ServiceRelations(service)); ok && rest != "" {
			ids = append(ids, id)
		}
	}

	return ids
}

// PrefetchRelations reads, in one round trip, the record of a unit or service and the list of the service's relations.
func (v *View) PrefetchRelations(name string) error {
	service, _, isUnit := strings.Cut(name, "/")
	record := keys.Service(service)
	if isUnit {
		record = keys.Unit(name)
	}
	return v.keys.Prefetch(keyspace.Scope{Keys: []string{record}, Prefixes: []string{keys.ServiceRelations(service)}})
}

// ServiceRelations reads the relations of a service, sorted by id.
func (v *View) ServiceRelations(service string) ([]Relation, error) {
	return v.findRelations(service, func(int, relationIndex) bool { return true })
}

// relationIndexes reads the index entries of a service's relations, by relation id.
func (v *View) relationIndexes(service string) (map[int]relationIndex, error) {
	all := map[int]relationIndex{}
	err := ReadBelow(v, keys.ServiceRelations(service), func(key string, index relationIndex) {
		if id, ok := keys.CutInt(key, keys.ServiceRelations(service)); ok {
			all[id] = index
		}
	})

	return all, err
}

// findRelations reads the service's relations for which wanted returns true, sorted by id. It calls wanted with each
// entry of the service's index. It returns ErrNotFound if one of the wanted relations has no record.
func (v *View) findRelations(service string, wanted func(id int, index relationIndex) bool) ([]Relation, error) {
	all, err := v.relationIndexes(service)
	if err != nil {
		return nil, err
	}

	var ids []int
	for id, index := range all {
		if wanted(id, index) {
			ids = append(ids, id)
		}
	}

	return v.loadRelations(ids)
}

// loadRelations reads the relations with the ids, sorted by id. It returns ErrNotFound if one of them has no
// record.
func (v *View) loadRelations(ids []int) ([]Relation, error) {
	all, missing, err := v.findRecords(ids)
	if err != nil {
		return nil, err
	}
	if len(missing) > 0 {
		return nil, refuse(ErrNotFound, "%s not found", Relation{ID: missing[0]})
	}

	return all, nil
}

// findRecords reads the records of the relations with the ids, sorted by id. It returns the ids without a record in
// missing. An id can occur twice in ids, but its record is returned only once. findRecords changes the slice ids.
func (v *View) findRecords(ids []int) (all []Relation, missing []int, err error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	recordKeys := make([]string, len(ids))
	for i, id := range ids {
		recordKeys[i] = keys.Relation(id)
	}
	if err := v.keys.Prefetch(keyspace.Exactly(recordKeys...)); err != nil {
		return nil, nil, err
	}

	for _, id := range ids {
		r, err := v.Relation(id)
		switch {
		case errors.Is(err, ErrNotFound):
			missing = append(missing, id)
		case err != nil:
			return nil, nil, err
		default:
			all = append(all, r)
		}
	}

	return all, missing, nil
}

// RelationOf finds a relation of the unit's service by "relation-3", "3", "db:3" or "db". If the part after the
// colon is a number, only the number counts, and otherwise only the name. If several relations have the name, it
// returns an error that lists them. It returns ErrNotFound if there is no such relation.
func (v *View) RelationOf(u Unit, text string) (Relation, error) {
	name, number, _ := strings.Cut(text, ":")
	if number == "" {
		number = strings.TrimPrefix(text, "relation-")
	}

	wanted := func(_ int, index relationIndex) bool { return index.Name == name }
	// A number identifies the relation, so the name before it does not count.
	if wantedID, err := strconv.Atoi(number); err == nil {
		wanted = func(id int, _ relationIndex) bool { return id == wantedID }
	}

	found, err := v.findRelations(u.Service, wanted)
	switch {
	case err != nil:
		return Relation{}, err
	case len(found) == 0:
		return Relation{}, refuse(ErrNotFound, "Relation not found")
	case len(found) == 1:
		return found[0], nil
	}

	return Relation{}, fmt.Errorf("relation %q of unit %q is ambiguous: want one of %s",
		text, u.Name, describeRelations(found))
}
