package worker

import (
	"context"
	"log/slog"
	"time"
)

// installationTimeout bounds for how long a worker begins nothing because a former
// installation is being finished.
const installationTimeout = time.Minute

// keepInstallationFinished runs beside the loop: the script of a package may have started this
// worker, and wait for it.
func (w *worker) keepInstallationFinished(ctx context.Context) error {
	if w.o.FinishInstallation != nil {
		if err := w.o.FinishInstallation(ctx); err != nil && ctx.Err() == nil {
			slog.Warn("what was installed before may be left half-way, or lie about", "error", err)
		}
	}
	close(w.installationDone)
	<-ctx.Done()
	return nil
}

// awaitInstallation keeps tasks from being ended by a package's script, and their
// findings from being outdated by it. If it takes too long, the update goes on.
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
