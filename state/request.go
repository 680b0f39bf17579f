package state

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// RequestKind is a kind of request by a unit's agent.
type RequestKind string

// The kinds of requests.
const (
	RequestRemoval     RequestKind = "remove"      // the unit is dead: remove it
	RequestRelationEnd RequestKind = "end"         // the unit was the last in a dying relation: remove the relation
	RequestSubordinate RequestKind = "subordinate" // the unit is in the relation: add its subordinate unit
)

// Request asks the provisioner's leader for a change of records that do not belong to the unit whose agent
// writes the request. The agent writes the request in the same commit as its reason. The leader removes the
// request in the same commit in which it makes the last of the requested changes.
type Request struct {
	Unit     string      `json:"-"`
	Kind     RequestKind `json:"kind"`
	Relation int         `json:"relation"` // the relation's id, or NoRelation
	Since    time.Time   `json:"since"`
}

// key returns the request's key. There is at most one request of each kind for a unit and relation.
func (r Request) key() string {
	if r.Relation == NoRelation {
		return keys.Request(r.Unit, string(r.Kind))
	}
	return keys.Request(r.Unit, string(r.Kind)+"-"+strconv.Itoa(r.Relation))
}

// String describes the requested change: "removal of app/0".
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

// requestsBelow reads the requests with keys below the prefix, the oldest first. It reports a record that
// does not agree with its key as damage, and leaves it out. It also leaves out keys without a valid unit.
func (v *View) requestsBelow(prefix string) ([]Request, error) {
	var all []Request
	err := ReadBelow(v, prefix, func(key string, r Request) {
		// Only the key, requests/SERVICE/NUMBER/WHAT, names the unit.
		service, rest, _ := strings.Cut(key[len(keys.Requests):], "/")
		number, _, _ := strings.Cut(rest, "/")
		r.Unit = service + "/" + number

		switch {
		case !charm.IsUnit(r.Unit):
			// The key does not belong to a request from a unit.
		case r.key() != key:
			// Skips records the damage, which is reported when the view ends.
			v.keys.Skips(keyspace.NewDamage(key, "its value is the request %q", strings.TrimPrefix(r.key(), keys.UnitRequests(r.Unit))))
		default:
			all = append(all, r)
		}
	})

	slices.SortStableFunc(all, func(a, b Request) int { return a.Since.Compare(b.Since) })
	return all, err
}

// RemoveRequest removes a request that was carried out, or that is no longer needed.
func (tx *Tx) RemoveRequest(r Request) { tx.keys.Remove(r.key()) }

// WatchRequests returns the [Scope] of all requests.
func WatchRequests() Scope { return keyspace.Below(keys.Requests) }

// LeaderServes reports whether the provisioner's leader carries out requests, and whether there is a leader.
// Without a leader, serves is true, since the next leader will carry them out. It is false if the leader runs
// an older binary, without requests.
func (v *View) LeaderServes() (serves, leads bool, err error) {
	p, leads, err := keyspace.Load[keyspace.Presence](v.keys, keys.ProvisionerLeader)
	return !leads || p.Serves, leads, err
}

// request records r, unless it is already recorded. If the leader does not carry out requests, the method
// records nothing and returns false. The unit's agent must then do the work itself.
func (tx *Tx) request(r Request) (taken bool, err error) {
	serves, _, err := tx.LeaderServes()
	if err != nil {
		return false, err
	}
	if !serves {
		return false, nil
	}

	_, isRecorded, err := tx.keys.Get(r.key())
	if err != nil {
		return true, err
	}
	if isRecorded {
		return true, nil
	}

	r.Since = time.Now().UTC().Round(0) // Round removes the monotonic time, which is not stored
	return true, tx.keys.Put(r.key(), r)
}

// DepartRelation is LeaveRelation for the unit's own agent. If the unit was the last member of a dying
// relation, it requests the relation's removal from the provisioner's leader. If the leader does not carry out
// requests, it removes the relation itself.
func (tx *Tx) DepartRelation(id int, unit string) error {
	return tx.leaveRelation(id, unit, func(r Relation) error {
		done, err := tx.isRelationDone(r)
		if err != nil {
			return err
		}
		if !done {
			return nil
		}

		taken, err := tx.request(Request{Unit: unit, Kind: RequestRelationEnd, Relation: id})
		if err != nil {
			return err
		}
		if taken {
			return nil
		}

		return tx.RemoveRelationIfDone(r)
	})
}

// RetireUnit marks a dying unit as dead after its stop hook has run, and requests its removal from the
// provisioner's leader. The unit's own agent calls it, and can call it again. mustRemove is true if the agent
// must remove the unit itself with [RemoveUnit], since the leader runs an older binary and does not carry out
// requests. RetireUnit returns ErrInUse if the unit is alive.
func (tx *Tx) RetireUnit(name string) (mustRemove bool, err error) {
	if err := tx.SetUnitDead(name); err != nil {
		return false, err
	}
	taken, err := tx.request(Request{Unit: name, Kind: RequestRemoval, Relation: NoRelation})
	return !taken, err
}

// wantSubordinate requests a subordinate unit for a principal that has entered the relation, if the principal
// lacks one. If the provisioner's leader does not carry out requests, it adds the unit itself. It returns
// ErrDead if the subordinate's service is not alive.
func (tx *Tx) wantSubordinate(r Relation, principal Unit) error {
	s, lacks, err := tx.LacksSubordinate(r, principal)
	if err != nil {
		return err
	}
	if !lacks {
		return nil
	}

	taken, err := tx.request(Request{Unit: principal.Name, Kind: RequestSubordinate, Relation: r.ID})
	if err != nil {
		return err
	}
	if taken {
		return nil
	}

	return tx.insertSubordinate(s, principal)
}

// AddSubordinate adds the subordinate unit of a principal in the relation, on the principal's machine. It
// does nothing if the principal already has that unit. It returns ErrDead if the principal, the relation or
// the subordinate's service is not alive, and ErrNotFound if one of them does not exist.
func (tx *Tx) AddSubordinate(id int, principal string) error {
	r, err := tx.Relation(id)
	if err != nil {
		return err
	}
	u, err := tx.Unit(principal)
	if err != nil {
		return err
	}
	if r.Life != Alive || u.Life != Alive {
		return refuse(ErrDead, "cannot add a subordinate to unit %q: the unit is %s, and %s is %s", principal, u.Life, r, r.Life)
	}

	s, lacks, err := tx.LacksSubordinate(r, u)
	if err != nil {
		return err
	}
	if !lacks {
		return nil
	}

	return tx.insertSubordinate(s, u)
}

// LacksSubordinate reports whether the relation requires a subordinate unit that the principal does not have.
// If lacks is true, s is the subordinate's service. A subordinate that is not alive does not count. If the relation
// has container scope, and the principal is not itself a subordinate, it returns ErrDead if the service at the other
// end is not alive.
func (v *View) LacksSubordinate(r Relation, principal Unit) (s Service, lacks bool, err error) {
	// Subordinates exist only in relations of container scope between two services. A subordinate has none itself.
	if r.Scope != charm.Container || r.IsPeer() || principal.Principal != "" {
		return Service{}, false, nil
	}

	s, err = v.AliveService(r.Other(principal.Service).Service)
	if err != nil {
		return s, false, err
	}
	if !s.Subordinate {
		return s, false, nil
	}

	has, err := v.hasSubordinate(principal, s.Name)
	return s, !has, err
}

// insertSubordinate adds a unit of the service as a subordinate of the principal, on the same machine.
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
	if err := tx.addServiceStorage(s, u, nil); err != nil { // all of its storage is new
		return err
	}

	principal.Subordinates = append(slices.Clone(principal.Subordinates), u.Name)
	return tx.keys.Put(keys.Unit(principal.Name), principal)
}
