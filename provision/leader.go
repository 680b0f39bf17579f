package provision

import (
	"context"
	"errors"
	"time"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/sweep"
)

// leader is the work of one term. Its methods are for one goroutine, but for those that say that
// jobs call them.
type leader struct {
	Options
	update       state.Updater // fenced by the leader's key
	pool         *jobPool
	recorder     *recorder
	owners       instanceOwners
	backoffs     backoffs
	absentAgents absentAgents

	last         plan
	listFailure  listFailure
	problems     []string // as reported last
	lastSweep    time.Time
	planDuration time.Duration // of the last runRound
}

// plan holds what was read and decided last.
type plan struct {
	at           time.Time
	baseRevision int64 // the revision before the provider was asked
	revision     int64
	want         Want
	actions      []Action
	nextRetry    time.Time // when the first failed start is tried again; zero: none is
}

// run plans and acts, round after round, until ctx is done or the leadership is lost.
func (l *leader) run(ctx context.Context) error {
	for {
		begin := time.Now()
		if err := l.runRound(ctx); err != nil {
			return err
		}

		l.planDuration = time.Since(begin)
		if err := l.awaitTrigger(ctx); err != nil {
			return err
		}
	}
}

// runRound plans and starts jobs once. It starts nothing if the provider cannot list its instances.
func (l *leader) runRound(ctx context.Context) error {
	for _, o := range l.pool.takeOutcomes() {
		l.noteOutcome(o)
	}
	baseRevision, err := state.Read(ctx, l.State, (*state.View).Revision)
	if err != nil {
		return err
	}

	now := l.Now()
	have, listErr := l.listInstances(ctx)
	s, err := readSnapshot(ctx, l.State)
	if err != nil {
		return err
	}

	l.last = plan{
		at:           now,
		baseRevision: baseRevision,
		revision:     s.revision,
		want:         s.newWant(now),
		nextRetry:    s.nextRetry(now),
	}

	l.owners.setRecorded(l.last.want.Machines)
	l.absentAgents.noteAsked(now)
	var problems []string
	if listErr == nil {
		l.last.actions, problems = Plan(l.last.want, have)
	} else {
		problems = []string{listErr.Error()}
	}

	l.measure(s)
	if err := l.reportProblems(ctx, s, problems); err != nil {
		return err
	}

	l.pool.cancelUnwantedStarts(l.last.want.startsInstance)
	l.pool.schedule(ctx, l.dueJobs(now))
	return nil
}

// dueJobs returns the planned actions whose backoff has passed, and a sweep of the state when it is due.
func (l *leader) dueJobs(now time.Time) (jobs []job) {
	for _, a := range l.backoffs.filterDue(l.last.actions, now) {
		jobs = append(jobs, l.newJob(a))
	}

	if now.Sub(l.lastSweep) >= sweepInterval {
		run := func(ctx context.Context) error {
			err := sweep.Run(ctx, l.State, now)
			if err != nil && ctx.Err() == nil {
				l.Log.Warn("provisioner cannot sweep", "error", err)
			}
			return err
		}
		jobs = append(jobs, job{Action{Verb: sweepState, Machine: string(sweepState)}, run})
	}

	return jobs
}

// noteOutcome takes note of a job's result. A failed start is retried by the machine's record, other actions
// by backoffs.
func (l *leader) noteOutcome(o outcome) {
	_, failed := errors.AsType[startError](o.err)
	switch {
	case o.action.Verb == sweepState:
		l.lastSweep = l.Now()
	case failed:
		delete(l.backoffs, o.action)
	default:
		l.backoffs.noteDone(o.action, l.Now())
	}
}

// awaitTrigger blocks until a new plan is needed: the wanted machines have changed, a job has ended, an agent is
// gone, a failed start is due, or planInterval is over.
func (l *leader) awaitTrigger(ctx context.Context) error {
	// Thousands of machines cause many changes. This collects them for one plan.
	_ = backoff.Sleep(ctx, min(2*l.planDuration, maxSettleTime))
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	release := l.pool.onJobEnd(cancel)
	defer release()

	err := l.awaitChange(waiting)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waiting.Err() != nil || errors.Is(err, state.ErrHistoryLost) {
		return nil
	}

	return err
}

// awaitChange waits until the records have changed in a way that the plan depends on, or until an agent that
// was present at the last plan has gone. The progress of starts, and the agents' own notes, are in the same
// records and change nothing.
func (l *leader) awaitChange(ctx context.Context) error {
	w, err := l.State.Watch(ctx, l.last.baseRevision, state.WatchMachines(), state.WatchEnvironment(),
		state.WatchMachineAgents())
	if err != nil {
		return err
	}
	defer w.Close()

	for {
		limit, cancel := context.WithTimeout(ctx, l.untilNextPlan())
		changes, err := w.Changes(limit)
		over := limit.Err() != nil
		cancel()

		if over {
			return nil
		}
		if err != nil {
			return err
		}
		if !l.noteAgents(changes) {
			continue
		}

		s, err := readSnapshot(ctx, l.State)
		if err != nil {
			return err
		}
		if !l.last.want.equal(s.newWant(l.Now())) {
			return nil
		}
	}
}

// untilNextPlan returns how long the leader may wait for a change: until the first backoff, retry or interval
// ends.
func (l *leader) untilNextPlan() time.Duration {
	now := l.Now()
	wait := l.backoffs.untilDue(l.last.actions, now, planInterval-now.Sub(l.last.at))
	wait = l.untilAbsentDue(now, wait)
	for _, due := range []time.Time{l.last.nextRetry, l.listFailure.due} {
		if !due.IsZero() {
			wait = min(wait, due.Sub(now))
		}
	}

	return max(wait, 10*time.Millisecond)
}
