package state

import (
	"context"
	"fmt"
)

// AddMachines adds n machines in batches. On an error it returns those that were added.
func (s *State) AddMachines(ctx context.Context, n int, spec MachineSpec) ([]Machine, error) {
	var machines []Machine
	update := counted(ctx, s.Update, Progress{What: "machines added", Total: n})
	for len(machines) < n {
		var batch []Machine
		err := update(ctx, func(tx *Tx) error {
			batch = nil
			for range min(destroyBatch, n-len(machines)) {
				m, err := tx.AddMachine(spec)
				if err != nil {
					return err
				}
				batch = append(batch, m)
			}
			return nil
		})
		if err != nil {
			return machines, fmt.Errorf("cannot add machine: %w", err)
		}
		machines = append(machines, batch...)
	}
	return machines, nil
}
