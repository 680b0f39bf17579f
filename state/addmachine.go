package state

import (
	"context"
	"fmt"
)

// AddMachines adds n machines in batches. On an error it returns those that were added.
func (s *State) AddMachines(ctx context.Context, n int, spec MachineSpec) ([]Machine, error) {
	update := counted(ctx, s.Update, Progress{What: "machines added", Total: n})
	machines, err := added(ctx, update, n, func(tx *Tx) (Machine, error) { return tx.AddMachine(spec) })
	if err != nil {
		err = fmt.Errorf("cannot add machine: %w", err)
	}
	return machines, err
}
