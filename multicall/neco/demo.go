package neco

type demoCmd struct{}

// Run demonstrates updates on this machine.
func (demoCmd) Run(o *operator) error { return o.parts.Demo(o.streams) }
