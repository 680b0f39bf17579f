package juju

import (
	"errors"
	"fmt"

	"bijou/state"
	"bijou/state/constraints"
)

type retryProvisioningCmd struct {
	Machines    []string `arg:"" name:"machine" help:"The machines' ids."`
	Constraints *string  `placeholder:"\"K=V ...\"" help:"What they have to satisfy from now on, instead of all they had to."`
}

// Run marks the machines, all or none. A machine that needs no retry is a line of output,
// not an error.
func (c retryProvisioningCmd) Run(o *operator) error {
	var replace *constraints.Value
	if c.Constraints != nil {
		asked, err := parseConstraints(*c.Constraints)
		if err != nil {
			return err
		}
		replace = &asked
	}

	var output string
	err := o.update(func(tx *state.Tx) error {
		output = ""
		var refused []error
		for _, id := range c.Machines {
			err := tx.ResolveMachine(id, replace)
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
