package neco

import (
	"errors"
	"time"

	"bijou/multicall/console"
	"bijou/state/keyspace"
	"bijou/updater/keys"
	"bijou/updater/record"
)

type pauseCmd struct {
	For time.Duration `placeholder:"DURATION" help:"Pause for this time; default: until neco resume."`
	Why string        `placeholder:"REASON" help:"Give the reason, for the status."`
}

// Run pauses updates, and replaces an earlier pause. Without --for, the pause lasts until neco resume.
func (c pauseCmd) Run(o *operator) error {
	if c.For < 0 {
		return console.Usage(errors.New("--for needs a duration, such as --for 2h"))
	}

	p := record.Pause{Why: c.Why}
	if c.For > 0 {
		until := time.Now().Add(c.For).UTC().Truncate(time.Second)
		p.Until = &until
		o.setDetail("until %s", until.Format(time.RFC3339))
	}

	return o.update(func(tx *keyspace.Tx) error { return tx.Put(keys.Pause, p) })
}
