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

// Help shows how it is used.
func (waitCmd) Help() string {
	return `A unit is owed a hook as long as its agent, asked now, would do anything but wait: a setting, a
relation, another unit's word that its hooks have not been told. It takes the whole into account at
one moment; without patterns that is all of the environment.

It exits with 0 once all have come there; with 1 when a unit or its machine is in error, even if that
is tried again by itself; with 3 when the time is up. Both say which, and why.

Examples:
  juju deploy ./charms/mysql && juju wait mysql --for active --timeout 10m
  juju set mysql tuning=fast && juju wait
  juju destroy-service blog && juju wait blog --for gone`
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
