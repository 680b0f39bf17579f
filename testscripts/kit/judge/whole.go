package judge

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"bijou/state"
)

// End is the content of the state at a time when all units should have no more work.
type End struct {
	units     []string
	relations map[int]state.Relation
	members   map[int][]string
	beats     map[int]map[string]int // what each member has written
	busy      []string               // units with a running hook or in error
}

// EndOf reads the state's content.
func EndOf(v *state.View) (End, error) {
	e := End{relations: map[int]state.Relation{}, members: map[int][]string{}, beats: map[int]map[string]int{}}
	if err := e.readUnits(v); err != nil {
		return e, err
	}
	all, err := v.Relations()
	for _, r := range all {
		e.relations[r.ID] = r
		if err == nil {
			err = e.readMembers(v, r.ID)
		}
	}
	return e, err
}

func (e *End) readUnits(v *state.View) error {
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

func (e *End) readMembers(v *state.View, id int) error {
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

// Missing returns what the records lack compared with the state. Every unit must have seen every member's
// joined and changed, and each other unit's last number. Each relation that is gone must have ended. Nothing
// that a successful hook wrote may be missing.
func Missing(e End, records map[string][]Event) (lack []string) {
	for _, unit := range e.busy {
		lack = append(lack, unit+" has not come to rest")
	}
	written := lastWritten(records)
	for unit, events := range records {
		j := hearAll(events)
		if slices.Contains(e.units, unit) {
			lack = append(lack, untold(e, unit, j)...)
			lack = append(lack, owed(unit, j)...)
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

// MissingFrom is Missing for the state at that URL.
func MissingFrom(ctx context.Context, url string, records map[string][]Event) (lack []string, err error) {
	s, err := state.Open(ctx, url)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	var e End
	err = s.View(ctx, func(v *state.View) error {
		e, err = EndOf(v)
		return err
	})
	return Missing(e, records), err
}

// Wrong returns all faults in the records: violations of the rules, and leaks.
func Wrong(records map[string][]Event) (all []string) {
	for unit, events := range records {
		for _, v := range Violations(events) {
			all = append(all, unit+": "+v)
		}
	}
	return append(all, Leaked(records)...)
}

// owed returns the hooks that a living unit still has to run: failed ones, and those that a restart or
// an upgrade requires.
func owed(unit string, j *judge) (lack []string) {
	for _, hook := range j.failed {
		lack = append(lack, unit+" has not run again "+hook)
	}
	if j.restarted || j.configure {
		lack = append(lack, unit+" has not run config-changed after a restart or an upgrade")
	}
	return lack
}

// Leaked returns the numbers of other units that units have seen although no successful hook wrote
// them.
func Leaked(records map[string][]Event) (leaks []string) {
	wrote := map[string]bool{}
	for unit, events := range records {
		all, _ := Runs(events)
		for _, r := range all {
			for _, id := range r.IDs {
				wrote[fmt.Sprint(unit, id, r.Wrote)] = wrote[fmt.Sprint(unit, id, r.Wrote)] || r.counts() || r.Cut
			}
		}
	}
	for unit, events := range records {
		for _, e := range events {
			seen, number := e.Settings["beat"]
			n, err := strconv.Atoi(seen)
			if number && err == nil && records[e.Remote] != nil && !wrote[fmt.Sprint(e.Remote, e.Relation(), n)] {
				leaks = append(leaks, fmt.Sprintf("%s: %s has seen beat %d of %s in relation %d, which no hook has committed", unit, e.Hook, n, e.Remote, e.Relation()))
			}
		}
	}
	return leaks
}

// Upgraded returns, from a unit's record, the revisions whose upgrade-charm succeeded, and the
// revisions of any hook.
func Upgraded(events []Event) (upgraded, ran map[int]bool) {
	ran = map[int]bool{}
	for _, e := range events {
		if e.Event == Begin {
			ran[e.Revision] = true
		}
	}
	return hearAll(events).upgraded, ran
}

// untold returns the facts about other units for which a living unit has not run the hooks yet.
func untold(e End, unit string, j *judge) (lack []string) {
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

// unended returns members that have left a relation without a departed hook, and relations that are gone
// without a broken hook.
func unended(e End, unit string, j *judge) (lack []string) {
	for _, m := range j.members {
		if _, there := e.relations[m.relation]; !there && slices.Contains(e.units, unit) && !j.broken[m.relation].told {
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

// sees reports whether the unit sees the other unit in the relation.
func sees(r state.Relation, unit, other string) bool {
	return unit != other && (len(r.Endpoints) == 1 || ServiceOf(unit) != ServiceOf(other))
}

// lastWritten returns the last number that each unit wrote into each relation in a successful hook.
func lastWritten(records map[string][]Event) map[string]map[int]int {
	written := map[string]map[int]int{}
	for unit, events := range records {
		written[unit] = map[int]int{}
		all, _ := Runs(events)
		for _, r := range all {
			for _, id := range r.IDs {
				if r.counts() {
					written[unit][id] = r.Wrote
				}
			}
		}
	}
	return written
}
