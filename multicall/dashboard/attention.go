package dashboard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
)

// maxAttention is the maximum number of rows in the card "Needs attention". More rows would not help, since a thousand
// units in error usually have one reason.
const maxAttention = 20

// maxGrouped is the maximum number of units that a machine's row names.
const maxGrouped = 40

// trouble is a unit, a relation or a machine that needs an operator.
type trouble struct {
	ID, Name   string
	Kind       string // "unit" or "relation", or empty if the entity has no panel
	Word, Why  string
	Since      time.Time // zero if it is unknown
	LastHook   time.Time // the end of the last hook of a lost unit or machine, which was lost after that time
	ToDo       []status.Advice
	Units      []string // the units that are down because of this machine, up to maxGrouped
	Grouped    int      // the number of units that are down because of this machine
	importance int      // smaller numbers are shown first
}

// importances returns the importance of a trouble, by state. Smaller numbers are shown first: units that a fault has
// stopped come before units that wait for an operator's answer.
func importances() map[string]int {
	return map[string]int{"error": 1, "down": 2, "blocked": 3}
}

// machineImportance puts machines first, since a machine's fault stops its units.
const machineImportance = 0

// putAttention shows the troubles, the most important first, each with its reason and the commands that help. It
// shows at most maxAttention troubles and the number of the others. Each row belongs to a place in that order, and
// putAttention removes the rows of places that no trouble has.
func (e *liveEnvironment) putAttention() {
	units, lost := e.unitsInTrouble()
	troubles := slices.Concat(e.machinesInTrouble(lost), units, e.relationsInTrouble())
	slices.SortFunc(troubles, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(a.importance, b.importance), charm.CompareUnits(a.Name, b.Name))
	})

	for i := range maxAttention {
		id := fmt.Sprintf("env/attention/%02d", i)
		if i >= len(troubles) {
			delete(e.rows, id)
			continue
		}

		troubles[i].ID = id
		order := id
		e.rows.put("attention", id, order, e.render("trouble", troubles[i]))
	}

	const more = "env/attention/more"
	delete(e.rows, more)
	if n := len(troubles) - maxAttention; n > 0 {
		e.rows.put("attention", more, more, e.render("more-trouble", n))
	}
}

// unitsInTrouble returns the units that need an operator, which are those with a status in importances. lost has
// the names of the units that are down because their machine is down, by machine. They are not in troubles, since
// they belong to the machine's trouble.
func (e *liveEnvironment) unitsInTrouble() (troubles []trouble, lost map[string][]string) {
	lost = map[string][]string{}
	for _, service := range slices.Sorted(maps.Keys(e.status.Services)) {
		for name, u := range e.status.Services[service].Units {
			word := u.Word()
			importance, isTrouble := importances()[word]
			if !isTrouble {
				continue
			}
			if word == "down" && e.status.Machines[u.Machine].State == state.MachineDown {
				lost[u.Machine] = append(lost[u.Machine], name)
				continue
			}

			t := e.explainUnit(name, u)
			t.importance = importance
			troubles = append(troubles, t)
		}
	}

	return troubles, lost
}

// explainUnit returns the trouble of a unit, with its reason and the commands that help, but without its
// importance.
func (e *liveEnvironment) explainUnit(name string, u status.Unit) trouble {
	why := e.why(u)
	waitsFor, toDo := status.Explain(name, u, e.status.Machines[u.Machine])
	if len(toDo) == 0 {
		toDo = []status.Advice{showUnit(name)}
	}

	t := trouble{
		Name:  name,
		Kind:  "unit",
		Word:  u.Word(),
		Why:   cmp.Or(why, waitsFor),
		Since: u.Since(),
		ToDo:  toDo,
	}
	// It is unknown since when a unit is down. The page shows when its last hook ended.
	if t.Word == "down" {
		t.LastHook = e.last[name]
	}
	return t
}

// showUnit returns the advice to look at a unit, for trouble without any other advice.
func showUnit(unit string) status.Advice {
	return status.Advice{Command: "juju show-unit " + unit, Effect: "shows its options, relations and last hooks"}
}

// why returns the reason for a unit's status, without the command that shows more. The page shows commands
// separately.
func (s *server) why(u status.Unit) string {
	why, _, _ := strings.Cut(s.Environment.Explain(u), "; see: ")
	return why
}

// relationsInTrouble returns the relations in error. They are listed beside the units, since the state of a unit may not
// show the error of its relation. A relation whose failed units are all down is left out, since an operator must first
// start their agents.
func (e *liveEnvironment) relationsInTrouble() (troubles []trouble) {
	for id, r := range e.status.Relations {
		unit, failed, ok := e.failedUnit(r)
		if !ok {
			continue
		}

		provider, consumer := r.Ends()
		between := consumer + " with " + provider
		isPeer := consumer == provider
		if isPeer {
			between = "the units of " + consumer
		}
		lastLine := cmp.Or(failed.Stderr, failed.Logged) // of the failed hook
		reasons := []string{between, unit, failed.Message, lastLine}
		reasons = slices.DeleteFunc(reasons, func(reason string) bool { return reason == "" })
		toDo := status.ExplainRelation(unit, id, failed)
		if len(toDo) == 0 {
			toDo = []status.Advice{showUnit(unit)}
		}

		troubles = append(troubles, trouble{
			Name:       id,
			Kind:       "relation",
			Word:       "error",
			Why:        strings.Join(reasons, ": "),
			Since:      failed.Since,
			ToDo:       toDo,
			importance: importances()["error"],
		})
	}

	return troubles
}

// failedUnit returns the unit whose hook failed first in the relation, and the failure. It ignores units that are
// down, and prefers a failure that the operator has not resolved yet. ok is false if there is no such unit.
func (e *liveEnvironment) failedUnit(r status.Relation) (unit string, failed status.RelationUnit, ok bool) {
	for service, end := range r.Services {
		for name, candidate := range end.Units {
			isDown := e.status.Services[service].Units[name].State == state.UnitDown
			if candidate.State != state.RelationError || isDown {
				continue
			}

			// Resolved is empty until the operator has resolved the failure, so unresolved failures come first.
			// Among the others, those resolved as "done" come before those resolved as "retry".
			order := cmp.Or(
				cmp.Compare(candidate.Resolved, failed.Resolved),
				candidate.Since.Compare(failed.Since),
				charm.CompareUnits(name, unit),
			)
			if !ok || order < 0 {
				unit = name
				failed = candidate
				ok = true
			}
		}
	}

	return unit, failed, ok
}

// machinesInTrouble returns the machines that need an operator. lost has the units that are lost with their
// machine, by machine.
func (e *liveEnvironment) machinesInTrouble(lost map[string][]string) (troubles []trouble) {
	for id, m := range e.status.Machines {
		_, isFaulty := importances()[string(m.State)] // true for error and down, as for units
		if !isFaulty && m.Trouble == nil {
			continue
		}

		units := lost[id]
		slices.SortFunc(units, charm.CompareUnits)
		t := trouble{
			Name:       "machine " + id,
			Word:       string(m.State),
			Why:        cmp.Or(m.Error, m.Message),
			Units:      units[:min(len(units), maxGrouped)],
			Grouped:    len(units),
			importance: machineImportance,
		}

		switch {
		case m.State == state.MachineError:
			t.ToDo = []status.Advice{{Command: "juju resolved " + id, Effect: "retries its start"}}
		case m.State == state.MachineDown:
			t.Why = status.LostMessage
			t.ToDo = []status.Advice{status.StartAgent(id)}
			t.LastHook = e.lastHookOf(units)
		default:
			// The machine works, but its agent reports trouble.
			t.Word = "error"
			t.Why = m.Trouble.Message
			t.Since = m.Trouble.Since
			t.ToDo = []status.Advice{{Effect: "fix that: the next attempt is at " + m.Trouble.NextRetry.Local().Format(time.DateTime)}}
		}
		troubles = append(troubles, t)
	}

	return troubles
}

// lastHookOf returns when the last hook of the units ended, or the zero time if this is not known for any unit.
func (e *liveEnvironment) lastHookOf(units []string) (last time.Time) {
	for _, unit := range units {
		if ended := e.last[unit]; ended.After(last) {
			last = ended
		}
	}
	return last
}
