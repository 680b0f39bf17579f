package state

import (
	"cmp"
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

// Relation is one relation between two services, or among the units of one.
type Relation struct {
	ID        int         `json:"-"`
	Interface string      `json:"interface"`
	Scope     charm.Scope `json:"scope"`
	Life      Life        `json:"life"`
	Endpoints []Endpoint  `json:"endpoints"` // one for a peer relation, else the provider first
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

// Endpoint returns the end of that service; ok is false if it has none.
func (r Relation) Endpoint(service string) (e Endpoint, ok bool) {
	i := slices.IndexFunc(r.Endpoints, func(e Endpoint) bool { return e.Service == service })
	if i < 0 {
		return Endpoint{}, false
	}
	return r.Endpoints[i], true
}

// Other returns the end opposite of that service: its own in a peer relation.
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

// relationIndex is kept below each service of a relation: enough to find a second
// relation between the same endpoints. Life is here, too, so that whoever watches the
// service hears of it without watching what all members write.
type relationIndex struct {
	Name  string `json:"name"`            // its own endpoint's
	Other string `json:"other,omitempty"` // Endpoint.String of the other; empty for peers
	Life  Life   `json:"life,omitempty"`  // empty: alive
}

// AddRelation adds a relation between two endpoints, as InferEndpoints returns them. It returns ErrExists
// if they are related already, ErrNotFound if a service does not exist, and ErrDead if one is dying.
func (tx *Tx) AddRelation(eps ...Endpoint) (_ Relation, err error) {
	if len(eps) != 2 {
		return Relation{}, fmt.Errorf("cannot add relation: want two endpoints, got %d", len(eps))
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot add relation between %q and %q: %w", eps[0], eps[1], err)
		}
	}()

	a, aerr := tx.findEndpoint(eps[0])
	b, berr := tx.findEndpoint(eps[1])
	if err := errors.Join(aerr, berr); err != nil {
		return Relation{}, err
	}
	if !a.canRelateTo(b) {
		return Relation{}, errors.New("these two endpoints do not match")
	}

	// All that is in the way is named at once.
	related := tx.checkUnrelated(a.Endpoint, b.Endpoint)
	ofA := tx.checkLimit(a)
	ofB := tx.checkLimit(b)
	if err := errors.Join(checkContainer(a, b), related, ofA, ofB); err != nil {
		return Relation{}, err
	}

	if a.Role != charm.Provides {
		a, b = b, a
	}

	return tx.insertRelation(Relation{
		Interface: a.interfaceName, Scope: jointScope(a.scope,
			b.scope), Life: Alive, Endpoints: []Endpoint{a.Endpoint, b.Endpoint},
	})
}

func jointScope(a, b charm.Scope) charm.Scope {
	if a == charm.Container || b == charm.Container {
		return charm.Container
	}
	return charm.Global
}

// checkContainer refuses a relation of container scope between services that could not share a machine.
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

func (tx *Tx) checkUnrelated(a, b Endpoint) error {
	all, err := tx.relationIndexes(a.Service)
	if err != nil {
		return err
	}

	for index := range maps.Values(all) {
		if index.Name == a.Name && index.Other == b.String() {
			return refuse(ErrExists, "they are already related, or their relation is still being destroyed")
		}
	}

	return nil
}

func (tx *Tx) checkLimit(d charmEndpoint) error {
	if d.limit == 0 {
		return nil
	}

	all, err := tx.relationIndexes(d.Service)
	if err != nil {
		return err
	}

	var others []string
	for _, id := range slices.Sorted(maps.Keys(all)) {
		if all[id].Name == d.Name {
			others = append(others, all[id].Other)
		}
	}
	if len(others) < d.limit {
		return nil
	}

	return fmt.Errorf("the charm of %q allows %d at %q, and there is one, or one still being removed, with %s",
		d.Service, d.limit, d.Name, strings.Join(others, ", "))
}

func (tx *Tx) addPeerRelations(service string, c Charm) error {
	there, err := tx.relationNames(service)
	if err != nil {
		return err
	}

	for _, rel := range c.Meta.Relations() {
		if rel.Role != charm.Peers || slices.Contains(there, rel.Name) {
			continue
		}

		_, err := tx.insertRelation(Relation{
			Interface: rel.Interface, Scope: rel.Scope, Life: Alive,
			Endpoints: []Endpoint{{service, rel.Name, rel.Role}},
		})
		if err != nil {
			return err
		}
	}

	return nil
}

func (tx *Tx) insertRelation(r Relation) (_ Relation, err error) {
	if r.ID, err = tx.keys.NextNumber(keys.RelationCounter); err != nil {
		return Relation{}, err
	}
	r.Since = time.Now().UTC().Round(0)
	return r, tx.putRelation(r)
}

// rewriteRelation is putRelation for one that is there.
func (tx *Tx) rewriteRelation(r Relation) error {
	var indexes []string
	for _, e := range r.Endpoints {
		indexes = append(indexes, keys.ServiceRelation(e.Service, r.ID))
	}
	if err := tx.keys.Prefetch(indexes...); err != nil {
		return err
	}

	for _, key := range indexes { // Put keeps what this binary does not know
		if _, _, err := tx.keys.Get(key); err != nil {
			return err
		}
	}

	return tx.putRelation(r)
}

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

// Relation reads a relation. ErrNotFound.
func (v *View) Relation(id int) (Relation, error) {
	r, err := keyspace.LoadExisting[Relation](v.keys, keys.Relation(id), "relation-%d not found", id)
	r.ID = id
	return r, err
}

// Relations reads all relations, by id. It finds them by the services' indexes, since a list of all keys
// below relations/ would read all settings.
func (v *View) Relations() ([]Relation, error) {
	kvs, err := v.keys.List(keys.Services)
	if err != nil {
		return nil, err
	}
	return v.loadRelations(relationIDs(kvs))
}

// RelationsIn does what Relations does, for callers that have the keys of all services.
func (v *View) RelationsIn(services []keyspace.KeyValue) (all []Relation, missing []int, err error) {
	return v.findRecords(relationIDs(services))
}

func relationIDs(services []keyspace.KeyValue) (ids []int) {
	for _, kv := range services {
		service, rest, _ := strings.Cut(kv.Key[len(keys.Services):], "/")
		if id, ok := keys.CutInt(kv.Key, keys.ServiceRelations(service)); ok && rest != "" {
			ids = append(ids, id)
		}
	}

	return ids
}

// ServiceRelations reads the relations of a service, by id.
func (v *View) ServiceRelations(service string) ([]Relation, error) {
	return v.findRelations(service, func(int, relationIndex) bool { return true })
}

func (v *View) relationIndexes(service string) (map[int]relationIndex, error) {
	all := map[int]relationIndex{}
	err := ReadBelow(v, keys.ServiceRelations(service), func(key string, index relationIndex) {
		if id, ok := keys.CutInt(key, keys.ServiceRelations(service)); ok {
			all[id] = index
		}
	})

	return all, err
}

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

// findRecords reads the records of relations, and returns the ids of those that have none.
func (v *View) findRecords(ids []int) (all []Relation, missing []int, err error) {
	slices.Sort(ids)
	ids = slices.Compact(ids)
	records := make([]string, len(ids))
	for i, id := range ids {
		records[i] = keys.Relation(id)
	}
	if err := v.keys.Prefetch(records...); err != nil {
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

// RelationOf finds a relation of the unit's service by "relation-3", "3", "db:3" or
// "db"; a name of several is an error that lists them.
func (v *View) RelationOf(u Unit, text string) (Relation, error) {
	name, number, _ := strings.Cut(text, ":")
	id, err := strconv.Atoi(cmp.Or(number, strings.TrimPrefix(text, "relation-")))
	byID := err == nil
	found, err := v.findRelations(u.Service, func(n int, index relationIndex) bool {
		return byID && n == id || !byID && index.Name == name
	})

	switch {
	case err != nil:
		return Relation{}, err
	case len(found) == 0:
		return Relation{}, refuse(ErrNotFound, "Relation not found")
	case len(found) == 1:
		return found[0], nil
	}

	return Relation{}, fmt.Errorf("relation %q of unit %q is ambiguous: it could be %s",
		text, u.Name, describeRelations(found))
}
