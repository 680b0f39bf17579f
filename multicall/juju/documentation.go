package juju

import "bijou/multicall/console"

type documentationCmd struct{}

// Run lists the commands, one per line, and prints how to get help for one.
func (documentationCmd) Run(o *operator) error {
	t := console.NewTable("COMMAND", "")
	for _, c := range ownCommand().List() {
		t.Add(console.Plain, c.Name, c.Help)
	}

	// The data, here nil, is only for formats other than tabular.
	if err := o.printTable("tabular", nil, t); err != nil {
		return err
	}
	o.note("juju help COMMAND explains a command")
	return nil
}
