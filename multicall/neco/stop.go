package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/decide"
)

type stopCmd struct {
	Why string `placeholder:"REASON" help:"Give the reason, for the status, the history and the alert."`
}

// Run stops the running update.
func (c stopCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Halt(s, now, c.Why)
	})
}
