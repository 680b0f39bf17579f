package worker

import (
	"context"
	"testing"
	"time"

	"bijou/testscripts/updatertest"
	"bijou/updater/record"
)

// Nothing is begun on a server as long as an installation of before is finished there.
func TestMendsFirst(t *testing.T) {
	overStores(t, func(r *rig) {
		r.manifest = plan()
		f := &updatertest.Server{}
		mended := make(chan struct{})
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
		time.Sleep(100 * time.Millisecond) // for it to begin, if it did
		if did := f.All(); len(did) > 0 {
			r.T.Errorf("began %v", did)
		}
		close(mended)
		r.Await("success", updatertest.Succeeded)
	})
}
