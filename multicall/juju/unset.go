package juju

type unsetCmd struct {
	Service string   `arg:"" name:"application" help:"The application."`
	Options []string `arg:"" name:"option" help:"The options to reset to the charm's defaults."`
	waitFlags
}

// Run resets the options to their defaults, all or none.
func (c unsetCmd) Run(o *operator) error {
	return setCmd{Service: c.Service, reset: c.Options}.Run(o)
}
