package juju

type machinesCmd struct {
	Format     string `enum:"tabular,yaml,json" default:"tabular" placeholder:"FORMAT" help:"Print as tabular, yaml or json; default tabular."`
	outputFlag `embed:""`
}

// machineEntry is a machine with its units, as the commands for machines print it.
type machineEntry struct {
	jujuMachine `yaml:",inline"`
	Units       []string `yaml:"units" json:"units"`
}

// Run prints all machines. A table has one line for each machine.
func (c machinesCmd) Run(o *operator) error { return showMachineCmd{Format: c.Format}.Run(o) }
