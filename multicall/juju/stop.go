package juju

import "fmt"

type stopCmd struct{}

// Run ends the environment's processes on this host. It ends machine 0 first, since machine 0 starts the
// processes of all other machines again.
func (stopCmd) Run(o *operator) error {
	e, err := o.home.Choose(o.name)
	if err != nil {
		return err
	}

	stopped, err := o.stopAgents(e)
	if err != nil {
		return fmt.Errorf("cannot stop model %q: %w", e.Name, err)
	}
	if stopped == 0 {
		o.note("no process of model %q runs on this host", e.Name)
		return nil
	}

	o.note("model %q: %s ended; juju start starts them again", e.Name, formatCount(stopped, "agent"))
	return nil
}
