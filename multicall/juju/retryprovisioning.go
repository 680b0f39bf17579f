package juju

import (
	"errors"
	"fmt"

	"bijou/state"
	"bijou/state/constraints"
)

// retryProvisioningCmd is `juju retry-provisioning`.
type retryProvisioningCmd struct {
	Machines    []string `arg:"" name:"machine" help:"The machines' ids."`
	Constraints *string  `placeholder:"\"K=V ...\"" help:"What they have to satisfy from now on, instead of all they had to."`
}

// Help shows how it is used.
func (retryProvisioningCmd) Help() string {
	return `For machines whose start has failed, as "juju resolved MACHINE". New constraints are the machine's alone;
its service's and its units' stay.

Examples:
  juju retry-provisioning 14
  juju retry-provisioning 14 15 --constraints "mem=2G cpu-power=400"`
}

// Run marks the machines, each by itself.
func (c retryProvisioningCmd) Run(o *operator) error {
	replace, err := given(c.Constraints)
	if err != nil {
		return err
	}
	return o.open(func(s *state.State) error {
		var errs []error
		for _, id := range c.Machines {
			errs = append(errs, o.retryMachine(s, id, replace))
		}
		return errors.Join(errs...)
	})
}

// given reads constraints that may be left out: nil.
func given(text *string) (*constraints.Value, error) {
	if text == nil {
		return nil, nil
	}
	v, err := parseConstraints(*text)
	return &v, err
}

// retryMachine lets the provisioner try a machine again. One that needs no trying
// is said, and no error.
func (o *operator) retryMachine(s *state.State, id string, replace *constraints.Value) error {
	err := s.Update(o.ctx, func(tx *state.Tx) error { return tx.ResolveMachine(id, replace) })
	switch {
	case errors.Is(err, state.ErrNotInError):
		fmt.Fprintln(o.streams.Out, err)
		return nil
	case err == nil:
		fmt.Fprintf(o.streams.Out, "machine %s is marked as resolved\n", id)
	}
	return err
}
