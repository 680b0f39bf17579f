package juju

type unsetCmd struct {
	Service string   `arg:"" help:"The service."`
	Options []string `arg:"" name:"option" help:"The options; each goes back to the charm's default."`
	waitFlags
}

// Run puts the options back, all or none.
func (c unsetCmd) Run(o *operator) error {
	return setCmd{Service: c.Service, reset: c.Options}.Run(o)
}
