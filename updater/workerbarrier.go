package updater

import (
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
