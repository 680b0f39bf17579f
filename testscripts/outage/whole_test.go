package outage

import (
	"fmt"
	"slices"
	"strconv"

	"bijou/state"
)

// end is what the state says once everything has come to rest.
type end struct {
	units     []string
	relations map[int]state.Relation
	members   map[int][]string
	beats     map[int]map[string]int // what each member has written
	busy      []string               // units with a hook in flight, or in error
}

func (w *world) end() (e end, err error) {
	e = end{relations: map[int]state.Relation{}, members: map[int][]string{}, beats: map[int]map[string]int{}}
	err = w.view(func(v *state.View) error {
		if err := e.readUnits(v); err != nil {
			return err
		}
		all, err := v.Relations()
		for _, r := range all {
			e.relations[r.ID] = r
			if err == nil {
				err = e.readMembers(v, r.ID)
			}
		}
		return err
	})
	return e, err
}

func (e *end) readUnits(v *state.View) error {
	units, err := v.Units("")
	for _, u := range units {
		e.units = append(e.units, u.Name)
		records, err := v.Uniter(u.Name)
		if err != nil {
			return err
		}
		failed := records.Workflow.Failure != nil || u.Life != state.Alive
		for _, r := range records.Relations {
			failed = failed || r.Failure != nil
		}
		if failed || records.Op != nil || records.Workflow.State != "started" {
			e.busy = append(e.busy, u.Name)
		}
	}
	return err
}

func (e *end) readMembers(v *state.View, id int) error {
	members, err := v.Members(id)
	e.beats[id] = map[string]int{}
	for _, m := range members {
		e.members[id] = append(e.members[id], m.Unit)
		s, err := v.Settings(id, m.Unit)
		if err != nil {
			return err
		}
		e.beats[id][m.Unit], _ = strconv.Atoi(s.Values["beat"])
	}
	return err
}

// missing is what the records lack for everything to be told that the state
// knows: every member's joined and changed, each one's last number seen by all
// others, each relation that is gone ended, and nothing that a hook wrote and
// succeeded with forgotten.
func missing(e end, records map[string][]event) (lack []string) {
	for _, unit := range e.busy {
		lack = append(lack, unit+" has not come to rest")
	}
	written := lastWritten(records)
	for unit, events := range records {
		j := hearAll(events)
		if slices.Contains(e.units, unit) {
			lack = append(lack, untold(e, unit, j)...)
		}
		lack = append(lack, unended(e, unit, j)...)
		for id, n := range written[unit] {
			if got, in := e.beats[id][unit]; in && got != n {
				lack = append(lack, fmt.Sprintf("%s wrote %d into relation %d, the state has %d", unit, n, id, got))
			}
		}
	}
	return lack
}

// untold is what a living unit has not been told of the others.
func untold(e end, unit string, j *judge) (lack []string) {
	for id, r := range e.relations {
		if !slices.Contains(e.members[id], unit) {
			continue
		}
		for _, other := range e.members[id] {
			if !sees(r, unit, other) {
				continue
			}
			m := j.member(id, other)
			switch want := e.beats[id][other]; {
			case !m.in || !m.told:
				lack = append(lack, fmt.Sprintf("%s has not been told of %s in relation %d", unit, other, id))
			case m.beat != want:
				lack = append(lack, fmt.Sprintf("%s has seen beat %d of %s in relation %d, not %d", unit, m.beat, other, id, want))
			}
		}
	}
	return lack
}

// unended is what has not departed although it is out, and what is not broken
// although it is gone.
func unended(e end, unit string, j *judge) (lack []string) {
	for _, m := range j.members {
		if _, there := e.relations[m.relation]; !there && slices.Contains(e.units, unit) && !j.broken[m.relation] {
			lack = append(lack, fmt.Sprintf("%s has not been told that relation %d is broken", unit, m.relation))
		}
		if m.in && !slices.Contains(e.members[m.relation], m.name) {
			lack = append(lack, fmt.Sprintf("%s has not been told that %s left relation %d", unit, m.name, m.relation))
		}
	}
	return lack
}

func (j *judge) member(relation int, name string) member {
	for _, m := range j.members {
		if m.relation == relation && m.name == name {
			return *m
		}
	}
	return member{}
}

// sees tells if the unit hears of the other in the relation.
func sees(r state.Relation, unit, other string) bool {
	return unit != other && (len(r.Endpoints) == 1 || serviceOf(unit) != serviceOf(other))
}

// lastWritten is the last number that each unit has written into each relation
// in a hook that succeeded.
func lastWritten(records map[string][]event) map[string]map[int]int {
	written := map[string]map[int]int{}
	for unit, events := range records {
		written[unit] = map[int]int{}
		all, _ := runs(events)
		for _, r := range all {
			for _, id := range r.ids {
				if !r.failed() {
					written[unit][id] = r.wrote
				}
			}
		}
	}
	return written
}
