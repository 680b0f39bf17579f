package provision

import (
	"context"
	"time"

	"bijou/state"
)

// snapshot holds what is read of the state for one plan.
type snapshot struct {
	revision    int64
	environment state.Environment
	next        int // the number of the next machine
	machines    []state.Machine
	units       map[string]int // by machine that is not alive
	trouble     state.ProvisionerTrouble
}

func readSnapshot(ctx context.Context, st *state.State) (s snapshot, err error) {
	err = st.View(ctx, func(v *state.View) error {
		if s.revision, err = v.Revision(); err != nil {
			return err
		}
		if s.environment, err = v.Environment(); err != nil {
			return err
		}
		if s.next, err = v.NextMachine(); err != nil {
			return err
		}
		if s.trouble, err = v.ProvisionerTrouble(); err != nil {
			return err
		}
		if s.machines, err = v.Machines(); err != nil {
			return err
		}
		s.units, err = countUnits(v, s.machines)
		return err
	})
	return s, err
}

// Plan asks only for the units of machines that are not alive.
func countUnits(v *state.View, machines []state.Machine) (map[string]int, error) {
	units := map[string]int{}
	for _, m := range machines {
		if m.Life == state.Alive {
			continue
		}
		of, err := v.MachineUnits(m.ID)
		if err != nil {
			return nil, err
		}
		units[m.ID] = len(of)
	}
	return units, nil
}

func (s snapshot) newWant(now time.Time) Want {
	w := Want{Environment: s.environment.UUID, Harvest: s.environment.Harvest(), Next: s.next}
	for _, m := range s.machines {
		w.Machines = append(w.Machines, Wanted{
			ID: m.ID, Life: m.Life, Instance: m.InstanceID, Units: s.units[m.ID], Unmanaged: m.ID == "0",
			Private: m.Addresses.Private, Public: m.Addresses.Public,
			AwaitsRetry: m.Status == state.MachineError && (m.RetryAt.IsZero() || now.Before(m.RetryAt)),
		})
	}
	return w
}

// Zero: no failed start is tried again.
func (s snapshot) nextRetry(now time.Time) (first time.Time) {
	for _, m := range s.machines {
		if m.RetryAt.After(now) && (first.IsZero() || m.RetryAt.Before(first)) {
			first = m.RetryAt
		}
	}
	return first
}
