package juju

import "bijou/multicall/console"

type documentationCmd struct{}

// Run lists the commands, one a line.
func (documentationCmd) Run(o *operator) error {
	t := console.NewTable("COMMAND", "")
	for _, c := range ownCommand().List() {
		t.Add("", c.Name, c.Help)
	}

	if err := o.printTable("tabular", nil, t); err != nil {
		return err
	}
	o.note("juju help COMMAND explains one")
	return nil
}
