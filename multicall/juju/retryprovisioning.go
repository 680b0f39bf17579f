package juju

import (
	"errors"
	"fmt"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/constraints"
)

type retryProvisioningCmd struct {
	Machines    []string `arg:"" optional:"" name:"machine" help:"The machines' ids."`
	All         bool     `help:"Retry all machines in an error state."`
	Constraints *string  `placeholder:"\"K=V ...\"" help:"Replace the machines' constraints."`
}

// Run marks all chosen machines for a retry, or none. With --constraints, it also replaces their constraints. For a
// machine that is not in error, it only prints a line, and returns no error.
func (c retryProvisioningCmd) Run(o *operator) error {
	// Exactly one of --all and ids must be given.
	hasIDs := len(c.Machines) > 0
	if c.All == hasIDs {
		return console.Hint(console.Usage(errors.New("no machines given: want their ids, or --all")), "juju machines lists them")
	}

	// If newConstraints is nil, the machines keep their constraints.
	var newConstraints *constraints.Value
	if c.Constraints != nil {
		given, err := parseConstraints(*c.Constraints)
		if err != nil {
			return err
		}
		newConstraints = &given
	}

	var output string
	err := o.update(func(tx *state.Tx) error {
		// After a conflict, this function runs again.
		output = ""
		ids, err := c.chooseMachines(tx)
		if err != nil {
			return err
		}

		var refused []error
		for _, id := range ids {
			err := tx.ResolveMachine(id, newConstraints)
			switch {
			case errors.Is(err, state.ErrNotInError):
				output += err.Error() + "\n"
			case err == nil:
				output += fmt.Sprintf("machine %s is marked as resolved\n", id)
			default:
				refused = append(refused, err)
			}
		}

		return joinErrors(refused)
	})
	if err != nil {
		return err
	}

	fmt.Fprint(o.streams.Out, output)
	return nil
}

// chooseMachines returns the ids of the machines to retry, each once. With --all, these are all machines in error.
func (c retryProvisioningCmd) chooseMachines(tx *state.Tx) (ids []string, err error) {
	if !c.All {
		return distinct(c.Machines), nil
	}

	machines, err := tx.Machines()
	if err != nil {
		return nil, err
	}

	for _, m := range machines {
		if m.Status == state.MachineError {
			ids = append(ids, m.ID)
		}
	}
	return ids, nil
}
