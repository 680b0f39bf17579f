package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/leader"
)

type retryCmd struct{ reasonFlag }

// Help shows how it is used.
func (retryCmd) Help() string {
	return `Servers go on where they are; the step that failed is run again. "neco recover" begins again instead.`
}

// Run lets a stopped update go on.
func (retryCmd) Run(o *operator) error {
	return o.commitChanges(func(s leader.Snapshot, now time.Time) ([]updater.Change, error) {
		return leader.Retry(s, now, o.audit.Who)
	})
}
