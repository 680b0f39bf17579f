package state

import "context"

// Progress counts the steps of a job in batches.
type Progress struct {
	What        string // what is counted: "units of mysql added"
	Done, Total int
}

type progressKey struct{}

// WithProgress has every job in batches that gets the context (AddUnits, AddMachines,
// DestroyService) report before its first batch and after each, and whatever else calls
// ReportProgress. A job is over with the report whose Done is Total, or when it returns. The
// reports come one after another.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// ReportProgress passes the progress of a job to the function of WithProgress, if there is one.
// Total 0 is no job.
func ReportProgress(ctx context.Context, p Progress) {
	if report, ok := ctx.Value(progressKey{}).(func(Progress)); ok && p.Total > 0 {
		report(p)
	}
}

// withProgress returns an Updater whose every commit counts as batchSize steps.
func withProgress(ctx context.Context, update Updater, p Progress) Updater {
	ReportProgress(ctx, p)
	return func(ctx context.Context, f func(tx *Tx) error) error {
		if err := update(ctx, f); err != nil {
			return err
		}
		p.Done = min(p.Done+batchSize, p.Total)
		ReportProgress(ctx, p)
		return nil
	}
}
