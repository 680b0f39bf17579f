package state

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// RequestKind says what a unit's agent requests.
type RequestKind string

// The kinds of requests.
const (
	RequestRemoval     RequestKind = "remove"      // the unit is dead: remove it
	RequestRelationEnd RequestKind = "end"         // the unit was the last in a dying relation: remove that
	RequestSubordinate RequestKind = "subordinate" // the unit is in the relation: make its subordinate unit
)

// Request is what a unit's agent leaves to the provisioner's leader, since the records that change
// are not the unit's own. The agent writes it in the same commit as the fact that it follows from.
// The leader removes it with the last write that it asks for.
type Request struct {
	Unit     string      `json:"-"`
	Kind     RequestKind `json:"kind"`
	Relation int         `json:"relation"` // its id, or NoRelation
	Since    time.Time   `json:"since"`
}

// key names the request: there is one at most of a kind for each unit and relation.
func (r Request) key() string {
	if r.Relation == NoRelation {
		return keys.Request(r.Unit, string(r.Kind))
	}
	return keys.Request(r.Unit, string(r.Kind)+"-"+strconv.Itoa(r.Relation))
}

// String names what follows from the request: "removal of app/0".
func (r Request) String() string {
	switch r.Kind {
	case RequestRemoval:
		return "removal of " + r.Unit
	case RequestRelationEnd:
		return "removal of " + Relation{ID: r.Relation}.String()
	}

	return string(r.Kind) + " of " + r.Unit
}

// Requests reads all requests, the oldest first.
func (v *View) Requests() ([]Request, error) { return v.requestsBelow(keys.Requests) }

// UnitRequests reads the requests of one unit, the oldest first.
func (v *View) UnitRequests(unit string) ([]Request, error) {
	return v.requestsBelow(keys.UnitRequests(unit))
}

func (v *View) requestsBelow(prefix string) ([]Request, error) {
	var all []Request
	err := ReadBelow(v, prefix, func(key string, r Request) {
		service, rest, _ := strings.Cut(key[len(keys.Requests):], "/")
		number, _, _ := strings.Cut(rest, "/")
		r.Unit = service + "/" + number

		switch {
		case !charm.IsUnit(r.Unit):
			// It is none of a unit's.
		case r.key() != key:
			v.keys.Skips(keyspace.NewDamage(key, "its value is the request %q", strings.TrimPrefix(r.key(), keys.UnitRequests(r.Unit))))
		default:
			all = append(all, r)
		}
	})

	slices.SortStableFunc(all, func(a, b Request) int { return a.Since.Compare(b.Since) })
	return all, err
}

// RemoveRequest removes a request that is carried out, or that nothing follows from any more.
func (tx *Tx) RemoveRequest(r Request) { tx.keys.Remove(r.key()) }

// WatchRequests covers all requests.
func WatchRequests() Scope { return keyspace.Below(keys.Requests) }

// LeaderServes reports whether the provisioner's leader carries out requests. Without a leader, serves is
// true: the next one will. A leader of a binary that knows no requests makes it false.
func (v *View) LeaderServes() (serves, leads bool, err error) {
	p, leads, err := keyspace.Load[keyspace.Presence](v.keys, keys.ProvisionerLeader)
	return !leads || p.Serves, leads, err
}

// request records the request, unless it stands already. It returns false, and records nothing,
// under a leader that carries out none: then the unit's agent does the work itself.
func (tx *Tx) request(r Request) (taken bool, err error) {
	serves, _, err := tx.LeaderServes()
	if err != nil || !serves {
		return false, err
	}

	_, stands, err := tx.keys.Get(r.key())
	if err != nil || stands {
		return true, err
	}

	r.Since = time.Now().UTC().Round(0)
	return true, tx.keys.Put(r.key(), r)
}

// DepartRelation is LeaveRelation for the unit's own agent: where the unit was the last member of a
// dying relation, the provisioner's leader removes the relation.
func (tx *Tx) DepartRelation(id int, unit string) error {
	return tx.leaveRelation(id, unit, func(r Relation) error {
		done, err := tx.isRelationDone(r)
		if err != nil || !done {
			return err
		}

		taken, err := tx.request(Request{Unit: unit, Kind: RequestRelationEnd, Relation: id})
		if err != nil || taken {
			return err
		}

		return tx.RemoveRelationIfDone(r)
	})
}

// RetireUnit marks a dying unit as dead for its own agent: its stop hook has run, and the provisioner's
// leader removes it. It returns true where the agent must remove the unit itself, by RemoveUnit, since
// a leader of a former binary does not. Retiring again is no error. ErrInUse: the unit is alive.
func (tx *Tx) RetireUnit(name string) (removes bool, err error) {
	if err := tx.SetUnitDead(name); err != nil {
		return false, err
	}
	taken, err := tx.request(Request{Unit: name, Kind: RequestRemoval, Relation: NoRelation})
	return !taken, err
}

// wantSubordinate has the provisioner's leader give a principal that has entered the relation its
// subordinate unit. ErrDead if that unit's service is going.
func (tx *Tx) wantSubordinate(r Relation, principal Unit) error {
	s, lacks, err := tx.LacksSubordinate(r, principal)
	if err != nil || !lacks {
		return err
	}

	taken, err := tx.request(Request{Unit: principal.Name, Kind: RequestSubordinate, Relation: r.ID})
	if err != nil || taken {
		return err
	}

	return tx.insertSubordinate(s, principal)
}

// AddSubordinate gives a principal that is in the relation its subordinate unit, on the same machine,
// unless it has one. ErrDead if the principal, the relation or the unit's service is going, ErrNotFound
// if one is gone.
func (tx *Tx) AddSubordinate(id int, principal string) error {
	r, rerr := tx.Relation(id)
	u, uerr := tx.Unit(principal)
	if err := cmp.Or(rerr, uerr); err != nil {
		return err
	}
	if r.Life != Alive || u.Life != Alive {
		return refuse(ErrDead, "cannot add a subordinate to unit %q: it is %s, %s is %s", principal, u.Life, r, r.Life)
	}

	s, lacks, err := tx.LacksSubordinate(r, u)
	if err != nil || !lacks {
		return err
	}

	return tx.insertSubordinate(s, u)
}

// LacksSubordinate reports whether the relation gives the unit a subordinate unit that it does not
// have, and of which service. One that is going does not count. ErrDead if that service is going.
func (v *View) LacksSubordinate(r Relation, principal Unit) (s Service, lacks bool, err error) {
	if r.Scope != charm.Container || r.IsPeer() || principal.Principal != "" {
		return Service{}, false, nil
	}

	s, err = v.AliveService(r.Other(principal.Service).Service)
	if err != nil || !s.Subordinate {
		return s, false, err
	}

	there, err := v.hasSubordinate(principal, s.Name)
	return s, !there, err
}

func (tx *Tx) insertSubordinate(s Service, principal Unit) error {
	u, err := tx.insertUnit(Unit{
		Service:   s.Name,
		Machine:   principal.Machine,
		Series:    s.Series,
		Principal: principal.Name,
	})
	if err != nil {
		return err
	}
	if err := tx.addServiceStorage(s, u, nil); err != nil {
		return err
	}

	principal.Subordinates = append(slices.Clone(principal.Subordinates), u.Name)
	return tx.keys.Put(keys.Unit(principal.Name), principal)
}
