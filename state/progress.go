package state

import "context"

// Progress is how far a job in batches is.
type Progress struct {
	What        string // what is counted: "units of mysql added"
	Done, Total int
}

type progressKey struct{}

// WithProgress has every job in batches that gets the context (AddUnits,
// AddMachines, DestroyService) report before its first batch and after each, and
// whoever else calls Tell. A job is over with the report whose Done is Total, or
// when it returns. The reports come one after another.
func WithProgress(ctx context.Context, report func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, report)
}

// Tell reports how far a job is to whoever asked for it by WithProgress, if
// anybody did. Total 0 is no job.
func Tell(ctx context.Context, p Progress) {
	if report, ok := ctx.Value(progressKey{}).(func(Progress)); ok && p.Total > 0 {
		report(p)
	}
}

// withProgress returns an Updater whose every commit counts as batchSize steps.
func withProgress(ctx context.Context, update Updater, p Progress) Updater {
	Tell(ctx, p)
	return func(ctx context.Context, f func(tx *Tx) error) error {
		if err := update(ctx, f); err != nil {
			return err
		}
		p.Done = min(p.Done+batchSize, p.Total)
		Tell(ctx, p)
		return nil
	}
}
