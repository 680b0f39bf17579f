package updater

import (
	"context"
	"log/slog"
	"time"
)

// installationTimeout is how long a worker begins nothing, since its server is being mended.
const installationTimeout = time.Minute

// finishInstallation finishes what an installation has left half-way. The loop runs beside it: a
// package's script may have started this worker, and wait for it.
func (w *worker) finishInstallation(ctx context.Context) error {
	if w.o.Mend != nil {
		if err := w.o.Mend(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("what was installed before may be left half-way, or lie about", "error", err)
		}
	}
	close(w.installationDone)
	<-ctx.Done()
	return nil
}

// awaitInstallation waits until the server is mended, so that no script of a package ends what was
// begun, and what was found out lasts; if that takes too long, the update goes on.
func (w *worker) awaitInstallation(ctx context.Context) error {
	select {
	case <-w.installationDone:
	case <-time.After(installationTimeout):
		slog.Warn("an installation of before is still being finished; goes on beside it")
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}
