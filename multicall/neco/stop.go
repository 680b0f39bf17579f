package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/leader"
)

type stopCmd struct {
	Why string `placeholder:"REASON" help:"Why; it stands in the status, in the history and in the alert."`
}

// Help shows how it is used.
func (stopCmd) Help() string {
	return `Workers stop within a second, at the next safe point of their step. "neco retry" goes on, "neco recover"
begins again with the servers and the newest release as they are then.

Examples:
  neco stop --why "rack 3 has lost power"`
}

// Run stops the update that runs.
func (c stopCmd) Run(o *operator) error {
	return o.commitChanges(func(s leader.Snapshot, now time.Time) ([]updater.Change, error) {
		return leader.Halt(s, now, c.Why)
	})
}
