package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/decide"
)

type stopCmd struct {
	Why string `placeholder:"REASON" help:"Why; it stands in the status, in the history and in the alert."`
}

func (c stopCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Halt(s, now, c.Why)
	})
}
