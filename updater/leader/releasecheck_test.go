package leader

import (
	"testing"
	"time"

	"bijou/updater/record"
)

// TestNextCheck checks when the next check for releases is due. If the result of a successful check could not be
// recorded, the check is repeated soon, since nobody has learned of the result. A failed check keeps its delay, since
// the source may have asked for it.
func TestNextCheck(t *testing.T) {
	t.Parallel()
	last := time.Date(2012, 2, 29, 12, 0, 0, 0, time.UTC)
	config := record.Config{CheckInterval: 6 * time.Hour}
	for name, tt := range map[string]struct {
		checker releaseChecker
		want    time.Duration
	}{
		"success":            {releaseChecker{}, 6 * time.Hour},
		"failure":            {releaseChecker{failures: 1, retryDelay: 10 * time.Minute}, 10 * time.Minute},
		"unrecorded success": {releaseChecker{unrecorded: true}, time.Minute},
		"unrecorded failure": {releaseChecker{unrecorded: true, failures: 1, retryDelay: 10 * time.Minute}, 10 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tt.checker.lastCheck = last
			if got := tt.checker.nextCheck(config).Sub(last); got != tt.want {
				t.Errorf("the next check is due after %v, want %v", got, tt.want)
			}
		})
	}
}
