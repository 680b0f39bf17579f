package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/text"
)

// readQueue reads the hooks and actions that wait for the unit: hooks of relations in the order of their
// arrival, then actions and commands of operators.
func (d *UnitDetail) readQueue(v *state.View, unit string) error {
	inside, err := v.Uniter(unit)
	if err != nil {
		return err
	}

	places := map[string]int64{}
	for id, members := range inside.Members {
		for member, m := range members {
			if m.Pending != "" {
				text := fmt.Sprintf("%s-%s of %s, for %s",
					inside.Relations[id].Name, m.Pending, state.Relation{ID: id}, member)
				d.Queue = append(d.Queue, text)
				places[text] = m.Place
			}
		}
	}

	slices.SortFunc(d.Queue, func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b))
	})

	queued, err := actions.List(v, unit)
	if err != nil {
		return err
	}
	for _, a := range queued {
		if a.Status == actions.Pending {
			d.Queue = append(d.Queue, strings.TrimSpace(fmt.Sprintf("action %d %s", a.ID, a.Name)))
		}
	}

	return nil
}

// explain sets the reason why the unit waits, and the operator's possible answers. The first case that
// applies wins, so that the cases go from outer causes (its machine) to inner ones (its hooks).
func (d *UnitDetail) explain(unit string, view Unit, m Machine) {
	relation, r := view.RelationInError()
	e := cmp.Or(d.Error, &UnitStateInfo{})

	switch {
	case m.State == state.MachineError:
		d.waitFor("machine %s, which is in error: %s", d.Machine, m.Error)
		d.advise(Advice{"juju resolved " + d.Machine, "retries its start"})
	case m.State == state.MachinePending:
		d.waitFor("machine %s, which is pending%s", d.Machine, strings.TrimSuffix(": "+m.Message, ": "))
	case d.Machine == "":
		d.waitFor("a machine")
	case d.State == state.UnitDown:
		d.waitFor("its agent, which is gone or cannot reach the store")
		d.advise(Advice{"juju start", "on the host of machine " + d.Machine + "; its agent.log says more"})
	case d.Trouble != nil:
		d.waitFor("its agent, which cannot go on: %s", text.FirstLine(d.Trouble.Message))
		d.advise(Advice{Effect: "mend that: the next attempt is at " + formatLocal(d.Trouble.NextRetry)})
	case d.Running != nil:
		d.waitFor("the end of %s, which has been running since %s%s", d.Running.Name,
			formatLocal(d.Running.Since), d.Running.HeldBy())
		d.advise(Advice{"juju interrupt " + unit, "ends it, if it hangs"})
	case e.Message == waitsForProvisioner:
		d.waitFor("a provisioner")
		d.advise(Advice{"juju start", "on the host of machine 0 starts one"})
	case e.Hook != "":
		d.explainFailure(unit, unit, e.Hook+": "+e.Message, e.Resolved, e.NextRetry)
	case relation != "":
		d.explainFailure(unit, unit+" "+relation, r.Message, r.Resolved, r.NextRetry)
	case e.Message != "":
		d.waitFor("%s", e.Message)
	case d.Next != "":
		// It waits for nothing: its agent is about to act.
	case d.State != state.UnitStarted && d.Life == state.Alive:
		// Before start, the agent's decision (agent/uniter/decide) waits only for a leader of the service.
		d.waitFor("a unit that leads its application")
	case d.Life != state.Alive:
		d.waitFor("the end of its relations and subordinates")
	case d.Workload.Current == "blocked" || d.Workload.Current == "waiting":
		d.waitFor("what its charm says: %s", d.Workload.Message)
	}
}

// explainFailure says that the unit waits for the operator's answer to a failure, and which answers there
// are.
func (d *UnitDetail) explainFailure(unit, what, why string, answer state.Resolved, retry time.Time) {
	if answer != state.Unresolved {
		d.waitFor("its agent to take up your answer to %s", why)
		return
	}

	byItself := ""
	if !retry.IsZero() {
		byItself = ", or its retry at " + formatLocal(retry)
	}
	d.waitFor("your answer%s, after %s", byItself, why)
	d.advise(Advice{"juju debug-log --unit " + unit, "shows what it wrote"})
	d.advise(Advice{"juju resolved --retry " + what, "runs it again"})
	d.advise(Advice{"juju resolved --no-retry " + what, "counts it as done"})
}

func (d *UnitDetail) waitFor(format string, args ...any) {
	d.WaitsFor = fmt.Sprintf(format, args...)
}

// Advice is what an operator can type, and what that does.
type Advice struct{ Command, Effect string }

// String returns both as one sentence.
func (a Advice) String() string { return strings.TrimSpace(a.Command + " " + a.Effect) }

// Explain returns the reason why a unit waits, and the operator's possible answers. Both are empty for a
// unit that waits for nothing.
func Explain(name string, u Unit, m Machine) (waitsFor string, toDo []Advice) {
	d := UnitDetail{
		Machine:  u.Machine,
		Life:     u.Life,
		State:    u.State,
		Workload: u.WorkloadInfo(),
		Agent:    u.AgentInfo(),
		Error:    u.Info,
		Trouble:  u.Trouble,
		Running:  u.Running,
	}
	d.explain(name, u, m)

	return d.WaitsFor, d.Advice
}

func (d *UnitDetail) advise(a Advice) {
	d.Advice = append(d.Advice, a)
	d.ToDo = append(d.ToDo, a.String())
}

func formatLocal(t time.Time) string { return t.Local().Format(time.DateTime) }
