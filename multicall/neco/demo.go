package neco

import "errors"

type demoCmd struct{}

// Run runs the demo.
func (demoCmd) Run(o *operator) error {
	if o.parts.Demo == nil {
		return errors.New("this program has no demo")
	}
	return o.parts.Demo(o.streams)
}
