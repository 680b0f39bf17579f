package juju

import (
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

type waitCmd struct {
	Globs   []string      `arg:"" optional:"" name:"glob" help:"Only the services and units that match (mysql, 'wordpress/*'); default: all."`
	For     string        `enum:"idle,active,gone" default:"idle" placeholder:"STATE" help:"idle: started, and nothing is owed to any; active: that, and each says so of its workload; gone: they are no more. Default idle."`
	Timeout time.Duration `placeholder:"DURATION" help:"Give up after that long (30s, 10m); default: never."`
}

// Run waits, and prints nothing but how far it is.
func (c waitCmd) Run(o *operator) error {
	if err := checkGlobs(c.Globs); err != nil {
		return console.Usage(err)
	}
	return o.openChosen(func(s *state.State) error {
		w := settleWaiter{o: o, state: s, globs: c.Globs, until: c.For, timeout: c.Timeout}
		return w.wait()
	})
}
