package worker

import (
	"slices"

	"bijou/updater/record"
	"bijou/updater/release"
)

// A barrier compares steps by their names and plans by their digests: a number alone is
// another step in another plan.

// stepNumber returns the number that the step of that name has in the worker's own plan; 0 if
// that has no such step. Former versions record numbers only.
func (s Snapshot) stepNumber(name string, recorded int) int {
	if name == "" {
		return recorded
	}
	return 1 + slices.IndexFunc(s.Steps, func(step release.Step) bool { return step.Name == name })
}

func (s Snapshot) hasReached(w record.Status) bool {
	return w.IsFor(*s.Current) && !record.Differ(w.Plan, s.Digests.Plan) && (w.Finished || s.stepNumber(w.StepName, w.Step) >= s.Status.Step)
}

func (s Snapshot) isGateOpen() bool {
	g := s.Gate
	return g.OpenStep(*s.Current) > 0 && !record.Differ(g.Plan, s.Digests.Plan) && s.stepNumber(g.StepName, g.Step) >= s.Status.Step
}
