package updater

import (
	"fmt"
	"slices"

	"bijou/updater/record"
	"bijou/updater/release"
)

// A barrier compares steps by their names and plans by their digests: a number alone is
// another step in another plan.

// stepNumber is which step of the worker's own plan has that name. Programs of before told
// numbers only.
func (s WorkerSnapshot) stepNumber(name string, told int) int {
	if name == "" {
		return told
	}
	return 1 + slices.IndexFunc(s.Steps, func(step release.Step) bool { return step.Name == name })
}

// hasReached reports whether another worker has come to the step that this one is at.
func (s WorkerSnapshot) hasReached(w record.Status) bool {
	return w.For(*s.Current) && !record.Differ(w.Plan, s.Digests.Plan) && (w.Finished || s.stepNumber(w.StepName, w.Step) >= s.Status.Step)
}

// gateOpen reports whether the gate of the step is open.
func (s WorkerSnapshot) gateOpen() bool {
	g := s.Gate
	return g.Of(*s.Current) > 0 && !record.Differ(g.Plan, s.Digests.Plan) && s.stepNumber(g.StepName, g.Step) >= s.Status.Step
}

// otherPlans are servers that have come to a step of another plan than the first that has
// come to one, and what differs.
func (s Snapshot) otherPlans() (others []int, why string) {
	first, names, plan := -1, map[int]string{}, s.Current.Plan
	for _, lrn := range s.Current.Servers {
		w, ok := s.workerRecord(lrn)
		if !ok || w.Step == 0 || w.Attempt != s.Current.Attempt {
			continue
		}
		if first < 0 {
			first = lrn
		}
		name := orElse(names[w.Step], w.StepName)
		if record.Differ(plan, w.Plan) || name != w.StepName {
			others = append(others, lrn)
			why = fmt.Sprintf("server %d has another plan than server %d: its digest is %s, not %s; its step %d is %s, not %s",
				lrn, first, record.ShortDigest(w.Plan), record.ShortDigest(plan), w.Step, w.StepName, name)
			continue
		}
		names[w.Step], plan = name, orElse(plan, w.Plan)
	}
	return others, why
}
