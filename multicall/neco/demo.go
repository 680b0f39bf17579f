package neco

type demoCmd struct{}

func (demoCmd) Run(o *operator) error { return o.parts.Demo(o.streams) }
