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

// readQueue reads the hooks and actions that wait for the unit: hooks of relations in the order of the queue,
// then operators' actions and commands.
func (d *UnitDetail) readQueue(v *state.View, unit string) error {
	uniter, err := v.Uniter(unit)
	if err != nil {
		return err
	}

	places := map[string]int64{} // the hooks' places in the agent's queue, by their line in d.Queue
	for id, members := range uniter.Members {
		for member, m := range members {
			if m.Pending != "" {
				line := fmt.Sprintf("%s-%s of %s, for %s",
					uniter.Relations[id].Name, m.Pending, state.Relation{ID: id}, member)
				d.Queue = append(d.Queue, line)
				places[line] = m.Place
			}
		}
	}

	slices.SortFunc(d.Queue, func(a, b string) int {
		return cmp.Or(cmp.Compare(places[a], places[b]), cmp.Compare(a, b))
	})

	unitActions, err := actions.List(v, unit)
	if err != nil {
		return err
	}
	for _, a := range unitActions {
		if a.Status == actions.Pending {
			// A command has no name.
			d.Queue = append(d.Queue, strings.TrimSpace(fmt.Sprintf("action %d %s", a.ID, a.Name)))
		}
	}

	return nil
}

// explain sets the reason why the unit waits, and the operator's possible answers. It uses the first case that
// applies. The cases go from outer causes, such as the unit's machine, to inner causes, such as its hooks. m is
// the unit's machine, or the zero value if the unit has none. If the unit does not wait, explain sets nothing.
func (d *UnitDetail) explain(unit string, view Unit, m Machine) {
	relation, r := view.RelationInError()
	e := cmp.Or(d.Error, &UnitStateInfo{})

	switch {
	case m.State == state.MachineError:
		d.waitFor("machine %s, which is in error: %s", d.Machine, m.Error)
		d.advise(Advice{"juju resolved " + d.Machine, "retries its start"})
	case m.State == state.MachinePending:
		// Without a message, TrimSuffix removes the colon.
		d.waitFor("machine %s, which is pending%s", d.Machine, strings.TrimSuffix(": "+m.Message, ": "))
	case d.Machine == "":
		d.waitFor("a machine")
	case d.State == state.UnitDown:
		d.waitFor("its agent, which is gone or cannot reach the store")
		d.advise(StartAgent(d.Machine))
	case d.Trouble != nil:
		d.waitFor("its agent, which cannot continue: %s", text.FirstLine(d.Trouble.Message))
		d.advise(Advice{Effect: "fix that: the next attempt is at " + formatLocal(d.Trouble.NextRetry)})
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
		// The unit does not wait: its agent is about to act.
	case d.State != state.UnitStarted && d.Life == state.Alive:
		// Before start, the agent's decision (agent/uniter/decide) waits only for a leader of the service.
		d.waitFor("a unit that leads its application")
	case d.Life != state.Alive:
		d.waitFor("the end of its relations and subordinates")
	case d.Workload.Current == "blocked" || d.Workload.Current == "waiting":
		d.waitFor("the reason that its charm gives: %s", d.Workload.Message)
	}
}

// explainFailure explains why the unit waits after the failure of a hook: for the operator's answer, or for
// its agent to act on the answer. In the first case it adds the possible answers. target are the arguments by
// which juju resolved finds the failure, and failure describes it. retry is the time of the automatic retry,
// or zero.
func (d *UnitDetail) explainFailure(unit, target, failure string, answer state.Resolved, retry time.Time) {
	if answer != state.Unresolved {
		d.waitFor("its agent, to act on your answer to %s", failure)
		return
	}

	orRetry := ""
	if !retry.IsZero() {
		orRetry = ", or its retry at " + formatLocal(retry)
	}
	d.waitFor("your answer%s, after %s", orRetry, failure)
	d.advise(Advice{"juju debug-log --unit " + unit, "shows what it wrote"})
	d.advise(Advice{"juju resolved --retry " + target, "runs it again"})
	d.advise(Advice{"juju resolved --no-retry " + target, "counts it as done"})
}

// waitFor sets the reason why the unit waits. The text completes the sentence "The unit waits for …".
func (d *UnitDetail) waitFor(format string, args ...any) {
	d.WaitsFor = fmt.Sprintf(format, args...)
}

// Advice is a command for the operator and its effect. If Command is empty, Effect is the whole advice.
type Advice struct{ Command, Effect string }

// String returns the command and its effect as one sentence.
func (a Advice) String() string { return strings.TrimSpace(a.Command + " " + a.Effect) }

// Explain returns the reason why a unit waits, and the operator's possible answers. Both are empty if the unit
// does not wait. Explain does not know the next step of the unit's agent, so the reason can be wrong for a unit
// whose agent is about to act.
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

// StartAgent returns the advice for a machine whose agent is lost.
func StartAgent(machine string) Advice {
	return Advice{"juju start", "on the host of machine " + machine + "; agent.log there has more details"}
}

// ExplainRelation returns the operator's possible answers to a failed hook of a unit in a relation. It returns
// none if the operator has already answered.
func ExplainRelation(unit, relation string, r RelationUnit) []Advice {
	d := UnitDetail{}
	d.explainFailure(unit, unit+" "+relation, r.Message, r.Resolved, r.NextRetry)
	return d.Advice
}

// advise adds a possible answer of the operator.
func (d *UnitDetail) advise(a Advice) {
	d.Advice = append(d.Advice, a)
	d.ToDo = append(d.ToDo, a.String())
}

// formatLocal returns the date and time in the local time zone.
func formatLocal(t time.Time) string { return t.Local().Format(time.DateTime) }
