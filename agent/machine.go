package agent

import "context"

// RunMachine is the machine agent: it announces the machine, keeps one unit
// agent running for each of its units, and marks the machine dead once it is
// dying and empty.
//
// It returns nil when ctx is done or the machine is dead, and an error only for
// what no waiting heals: the machine or the environment does not exist (any
// more). A store that is away is waited for.
func RunMachine(ctx context.Context, o MachineOptions) error {
	return newMachine(o).run(ctx)
}

// RunUnit is one unit agent alone, under its own session. It returns nil when
// ctx is done or the unit is gone, and an error as RunMachine does. Another
// agent that runs the same unit is waited for.
func RunUnit(ctx context.Context, o UnitOptions) error {
	return newAlone(o).run(ctx)
}
