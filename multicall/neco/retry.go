package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/decide"
)

type retryCmd struct{ reasonFlag }

// Run lets the servers run the failed step of a stopped update again.
func (retryCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Retry(s, now, o.audit.Who)
	})
}
