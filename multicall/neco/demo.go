package neco

import "errors"

type demoCmd struct{}

// Help shows how it is used.
func (demoCmd) Help() string { return demoHelp }

// Run runs the demo.
func (demoCmd) Run(o *operator) error {
	if o.parts.Demo == nil {
		return errors.New("this program has no demo")
	}
	return o.parts.Demo(o.streams)
}

const demoHelp = `Starts three boot servers as processes in a throw-away folder, with a server of releases beside them,
and publishes two releases: the first comes to all servers by itself; the second meets a full disk on
one of them, is stopped everywhere, raises an alert, and goes on after neco recover. Needs no root, no
packages, no network, and about half a minute. The servers' services and containers are played.

Examples:
  neco demo`
