package neco

import (
	"time"

	"bijou/updater"
	"bijou/updater/decide"
)

type retryCmd struct{ reasonFlag }

func (retryCmd) Run(o *operator) error {
	return o.commitChanges(func(s decide.Snapshot, now time.Time) ([]updater.Change, error) {
		return decide.Retry(s, now, o.audit.Who)
	})
}
