package worker

import (
	"context"
	"testing"

	"bijou/testscripts/kit/need"
	"bijou/testscripts/kit/updatertest"
	"bijou/updater/record"
)

// TestMendsFirst checks that a worker starts no component until it has finished an earlier installation.
func TestMendsFirst(t *testing.T) {
	need.Whole(t)
	overStoresAndTime(t, func(r *rig) {
		r.manifest = plan()
		mended := make(chan struct{})
		f := &updatertest.Server{On: func(what string) {
			select {
			case <-mended:
			default:
				r.T.Errorf("began %s", what)
			}
		}}
		r.worker(1, r.T.TempDir(), f, Options{FinishInstallation: func(ctx context.Context) error {
			select {
			case <-mended:
			case <-ctx.Done():
			}
			return nil
		}})
		r.updater()
		r.Begin("1.1", 1)
		r.Await("its first step", func(_ record.Request, all map[int]record.Status) bool { return all[1].Step == 1 })
		r.rest()
		close(mended)
		r.Await("success", updatertest.Succeeded)
	})
}
