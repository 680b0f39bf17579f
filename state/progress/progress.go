// Package progress carries reports of how far a long job is, from whoever does it to
// whoever shows it. It knows neither.
package progress

import "context"

// Steps counts the steps of a job.
type Steps struct {
	What        string // what is counted: "units of mysql added"
	Done, Total int
}

type key struct{}

// With has every job that gets the context report before its first step and after each. A job is
// over with the report whose Done is Total, or when it returns. The reports come one after another.
func With(ctx context.Context, report func(Steps)) context.Context {
	return context.WithValue(ctx, key{}, report)
}

// Report passes the progress of a job to the function of With, if there is one. Total 0 is no job.
func Report(ctx context.Context, s Steps) {
	if report, ok := ctx.Value(key{}).(func(Steps)); ok && s.Total > 0 {
		report(s)
	}
}
