package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/leader"
)

type retryCmd struct{ reasonFlag }

// Run lets a stopped update go on.
func (retryCmd) Run(o *operator) error {
	return o.commitChanges(func(s leader.Snapshot, now time.Time) ([]updater.Change, error) {
		return leader.Retry(s, now, o.audit.Who)
	})
}
