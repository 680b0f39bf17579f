package juju

import (
	"strconv"

	"bijou/multicall/console"
	"bijou/state"
)

// machinesCmd is `juju machines`.
type machinesCmd struct{}

// Help shows how it is used.
func (machinesCmd) Help() string {
	return `Examples:
  juju machines`
}

// Run prints one line a machine.
func (machinesCmd) Run(o *operator) error {
	return o.view(func(v *state.View) error {
		machines, err := v.Machines()
		if err != nil {
			return err
		}
		t := console.NewTable("MACHINE", "STATE", "ADDRESS", "INSTANCE", "SERIES", "UNITS", "MESSAGE")
		for _, m := range machines {
			units, err := v.MachineUnits(m.ID)
			if err != nil {
				return err
			}
			shown, err := machineState(v, m)
			if err != nil {
				return err
			}
			t.Add(colour(shown), m.ID, shown, m.Addresses.Public, m.InstanceID, m.Series, strconv.Itoa(len(units)), firstLine(m.Message))
		}
		return t.Write(o.streams.Out, console.Coloured(o.streams.Out))
	})
}

// machineState is what is shown of a machine: its life if it is on its way out,
// else its status; one whose agent is gone is down.
func machineState(v *state.View, m state.Machine) (string, error) {
	present, err := v.Present(state.MachineAgent(m.ID))
	switch {
	case err != nil:
		return "", err
	case m.Life != state.Alive:
		return string(m.Life), nil
	case m.Status == state.MachineRunning && !present:
		return string(state.MachineDown), nil
	}
	return string(m.Status), nil
}
