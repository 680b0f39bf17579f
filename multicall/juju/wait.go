package juju

import (
	"time"

	"bijou/multicall/console"
	"bijou/state"
)

// waitFlags let a command return once what follows from it is done.
type waitFlags struct {
	Wait    bool          `help:"Return once what follows is done: as juju wait, with its exit codes."`
	Timeout time.Duration `placeholder:"DURATION" help:"Wait no longer than that; implies --wait."`
}

func (w waitFlags) flags() waitFlags { return w }

// awaiting is a command that may wait.
type awaiting interface{ flags() waitFlags }

// affect notes the services or units that the command has changed, and what they become.
func (o *operator) affect(until string, names ...string) {
	o.until, o.affected = until, append(o.affected, names...)
}

func (o *operator) awaitAffected(w waitFlags) error {
	if len(o.affected) == 0 || !w.Wait && w.Timeout == 0 {
		return nil
	}
	return o.openChosen(func(s *state.State) error {
		w := settleWaiter{o: o, state: s, globs: o.affected, until: o.until, timeout: w.Timeout}
		return w.wait()
	})
}

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
