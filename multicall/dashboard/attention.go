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

// maxAttention is how many rows the card "Needs attention" has. A thousand lost units have one reason.
const maxAttention = 20

// trouble is something that needs an operator: a unit, a relation or a machine.
type trouble struct {
	ID, Name   string
	Kind       string // unit or relation; empty: it has no panel of its own
	Word, Why  string
	Since      time.Time // zero: not known
	ToDo       []status.Advice
	importance int // the smaller, the earlier it is shown
}

// importances orders troubles: units that a fault has stopped come before those that wait for an answer.
func importances() map[string]int {
	return map[string]int{"error": 0, "down": 1, "blocked": 2}
}

// putAttention shows the troubles, each with its reason and the commands that help.
func (e *liveEnvironment) putAttention() {
	all := slices.Concat(e.unitsInTrouble(), e.relationsInTrouble(), e.machinesInTrouble())
	slices.SortFunc(all, func(a, b trouble) int {
		return cmp.Or(cmp.Compare(a.importance, b.importance), charm.CompareUnits(a.Name, b.Name))
	})

	for i := range maxAttention {
		id := fmt.Sprintf("env/attention/%02d", i)
		if i >= len(all) {
			delete(e.rows, id)
			continue
		}

		all[i].ID = id
		e.rows.put("attention", id, id, e.render("trouble", all[i]))
	}

	const more = "env/attention/more"
	delete(e.rows, more)
	if n := len(all) - maxAttention; n > 0 {
		e.rows.put("attention", more, more, e.render("more-trouble", n))
	}
}

func (e *liveEnvironment) unitsInTrouble() (all []trouble) {
	for _, service := range slices.Sorted(maps.Keys(e.status.Services)) {
		for name, u := range e.status.Services[service].Units {
			word := u.Word()
			importance, is := importances()[word]
			if !is {
				continue
			}

			waitsFor, toDo := status.Explain(name, u, e.status.Machines[u.Machine])
			said := e.Environment.Explain(u, u.WorkloadInfo().Message)
			said, _, _ = strings.Cut(said, "; see: ") // the command stands beside it

			all = append(all, trouble{
				Name:       name,
				Kind:       "unit",
				Word:       word,
				Why:        cmp.Or(said, waitsFor),
				Since:      u.Since(),
				ToDo:       toDo,
				importance: importance,
			})
		}
	}

	return all
}

// relationsInTrouble has relations whose units do not say so themselves.
func (e *liveEnvironment) relationsInTrouble() (all []trouble) {
	for id, r := range e.status.Relations {
		if r.State() != state.RelationError {
			continue
		}

		provider, consumer := r.Ends()
		all = append(all, trouble{
			Name:       id,
			Kind:       "relation",
			Word:       "error",
			Why:        fmt.Sprintf("the relation of %s with %s is in error; see its units", consumer, provider),
			importance: importances()["error"],
		})
	}

	return all
}

func (e *liveEnvironment) machinesInTrouble() (all []trouble) {
	for id, m := range e.status.Machines {
		importance, is := importances()[string(m.State)]
		if !is && m.Trouble == nil {
			continue
		}

		t := trouble{Name: "machine " + id, Word: string(m.State), Why: cmp.Or(m.Error, m.Message), importance: importance}
		if m.Trouble != nil {
			t.Why = m.Trouble.Message
			t.Since = m.Trouble.Since
		}
		switch m.State {
		case state.MachineError:
			t.ToDo = []status.Advice{{Command: "juju resolved " + id, Effect: "has its start tried again"}}
		case "down":
			t.ToDo = []status.Advice{{Command: "juju start", Effect: "on the host of the machine; its agent.log says more"}}
		}
		all = append(all, t)
	}

	return all
}
