package worker

import (
	"bijou/updater/record"
	"bijou/updater/release"
)

// OnceSnapshot has what a worker knows in a step that one server does for all.
type OnceSnapshot struct {
	Version  string           // the request's
	Plan     string           // the digest of the worker's plan
	Contents *record.Contents // the result; nil: none
	Leads    bool             // this worker was elected to do it
}

// NextOnce decides the next move in such a step. MoveTake campaigns.
func NextOnce(d OnceSnapshot) Move {
	decided := d.Contents != nil && release.Same(d.Contents.Version, d.Version) && !record.Differ(d.Contents.Plan, d.Plan)
	switch {
	case decided && d.Contents.Success:
		return MoveDone
	case decided:
		return MoveAbort
	case d.Leads:
		return MoveGo
	}
	return MoveTake
}
