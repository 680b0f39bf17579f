package requests

import (
	"errors"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// readRequested reads the cases of all requests.
func readRequested(v *state.View) ([]Case, error) {
	requests, err := v.Requests()
	if err != nil {
		return nil, err
	}

	return readCases(v, requests)
}

// readEverything reads the cases of all requests, and adds a case for the removal of each dead unit and each ending
// relation, even if nobody has requested it. An unrequested removal remains if a process was killed before it
// finished: an agent with an older binary, which makes no requests, or an operator's command.
func readEverything(v *state.View) ([]Case, error) {
	requests, err := v.Requests()
	if err != nil {
		return nil, err
	}

	units, err := v.Units("") // of all services
	if err != nil {
		return nil, err
	}
	for _, u := range units {
		if u.Life == state.Dead {
			requests = append(requests, state.Request{Unit: u.Name, Kind: state.RequestRemoval, Relation: state.NoRelation})
		}
	}

	relations, err := v.Relations()
	if err != nil {
		return nil, err
	}
	for _, r := range relations {
		if isEnding(r.Life) {
			requests = append(requests, state.Request{Kind: state.RequestRelationEnd, Relation: r.ID})
		}
	}

	return readCases(v, requests)
}

// readCases reads the records on which the decisions about the requests depend. It leaves out requests for
// which a record is damaged.
func readCases(v *state.View, requests []state.Request) ([]Case, error) {
	var recordKeys []string
	for _, r := range requests {
		if r.Unit != "" {
			recordKeys = append(recordKeys, keys.Unit(r.Unit))
		}
		if r.Relation != state.NoRelation {
			recordKeys = append(recordKeys, keys.Relation(r.Relation))
		}
	}
	if err := v.Keys().Prefetch(keyspace.Exactly(recordKeys...)); err != nil {
		return nil, err
	}

	var cases []Case
	for _, r := range requests {
		c, err := readCase(v, r)
		if v.Skips(err) {
			// The request is carried out once the record has been repaired.
			continue
		}
		if err != nil {
			return nil, err
		}
		cases = append(cases, c)
	}

	return cases, nil
}

// readCase reads the records on which the decision about one request depends. If a record does not exist, its
// fields stay empty. readCase sets Members only for a relation's end, and IsMember and Lacks only for other requests
// in a relation.
func readCase(v *state.View, r state.Request) (c Case, err error) {
	c.Request = r
	var unit state.Unit
	if r.Unit != "" {
		unit, err = v.Unit(r.Unit)
		if state.IgnoreNotFound(err) != nil {
			return c, err
		}
		c.Unit = unit.Life
	}

	if r.Relation == state.NoRelation {
		return c, nil
	}
	relation, err := v.Relation(r.Relation)
	if err != nil {
		return c, state.IgnoreNotFound(err)
	}

	c.Related = relation.Life
	if r.Kind == state.RequestRelationEnd {
		// The transaction that removes the relation checks again that it has no members.
		members, err := v.Keys().ListUnguarded(keys.Members(r.Relation))
		c.Members = len(members) > 0
		return c, err
	}

	_, c.IsMember, err = v.Member(r.Relation, r.Unit)
	if err != nil {
		return c, err
	}

	// A unit that is gone lacks no subordinate.
	if unit.Life == "" {
		return c, nil
	}
	_, c.Lacks, err = v.LacksSubordinate(relation, unit)
	if errors.Is(err, state.ErrDead) || errors.Is(err, state.ErrNotFound) {
		// A service of the relation is being removed.
		return c, nil
	}

	return c, err
}
