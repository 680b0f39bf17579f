package provision

import (
	"context"
	"errors"
	"time"

	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/sweep"
)

// leader is the state of one term of leadership. Only one goroutine may call its methods, except the methods
// that jobs call.
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
	problems     []string // the problems that were last reported
	lastSweep    time.Time
	planDuration time.Duration // how long the last runRound took
}

// newLeader returns the leader at the beginning of its term. update fails once the leadership is lost.
func newLeader(o Options, update state.Updater) *leader {
	return &leader{
		Options:      o,
		update:       update,
		pool:         &jobPool{busy: map[string]runningJob{}, doneSinceTaken: map[string]bool{}},
		recorder:     &recorder{update, make(chan entry, maxBatch)},
		backoffs:     backoffs{},
		absentAgents: absentAgents{},
	}
}

// plan contains the actions of one round, and the facts on which Plan has based them.
type plan struct {
	at           time.Time
	baseRevision int64 // the state's revision before the provider was queried
	revision     int64 // the state's revision at which want was read
	want         Want
	actions      []Action
	nextRetry    time.Time // when the next failed start is retried; zero if no start is retried
}

// run plans and acts in a loop, until ctx is done or the leadership is lost.
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

// runRound makes one plan, reports its problems, and schedules the plan's jobs and a sweep of the state, if they
// are due. It also cancels starts that are no longer wanted. If the provider cannot list its instances, the plan
// has no actions, and the failure is its only problem.
func (l *leader) runRound(ctx context.Context) error {
	// This comes before the reads below, so that the plan includes the results of these jobs.
	for _, o := range l.pool.takeOutcomes() {
		l.noteOutcome(o) // delays or allows the next attempt
	}

	// awaitChange watches from this revision on. An agent that disappears during the provider's query must
	// cause a new query.
	baseRevision, err := state.Read(ctx, l.State, (*state.View).Revision)
	if err != nil {
		return err
	}

	now := l.Now()
	// Plan requires that the provider lists its instances before the machines are read.
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

	// The new jobs must know which machine owns which instance.
	l.owners.setRecorded(l.last.want.Machines)
	l.absentAgents.noteQuery(now) // sets the times of the next queries

	// Without a list of the instances, the plan has no actions.
	var problems []string
	if listErr != nil {
		problems = []string{listErr.Error()}
	} else {
		l.last.actions, problems = Plan(l.last.want, have)
	}

	l.measure(s) // only updates metrics
	if err := l.reportProblems(ctx, s, problems); err != nil {
		return err
	}

	l.pool.cancelUnwantedStarts(l.last.want.startsInstance)
	l.pool.schedule(ctx, l.dueJobs(now))
	return nil
}

// dueJobs returns jobs for the planned actions whose backoff is over, and a sweep of the state if a sweep is
// due.
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
		// A sweep has no machine. The verb in its place is the key by which the pool runs only one sweep at a time.
		jobs = append(jobs, job{Action{Verb: sweepState, Machine: string(sweepState)}, run})
	}

	return jobs
}

// noteOutcome processes a job's result. After a sweep, the next one is due after sweepInterval. After a start
// whose failure was recorded, the machine's record decides about the retry. After any other action, successful
// or not, a backoff delays the next attempt.
func (l *leader) noteOutcome(o outcome) {
	_, startFailed := errors.AsType[startError](o.err)
	switch {
	case o.action.Verb == sweepState:
		l.lastSweep = l.Now() // also after a failure, so that the next sweep comes after sweepInterval
	case startFailed:
		// The machine's record has the time of the retry.
		delete(l.backoffs, o.action)
	default:
		// The error does not matter: the next plan shows whether the action has helped.
		l.backoffs.noteAttempt(o.action, l.Now())
	}
}

// awaitTrigger blocks until a new plan is needed: a job has ended, the wanted machines or settings have changed,
// or the time of untilNextPlan is over. It returns an error if ctx is done.
func (l *leader) awaitTrigger(ctx context.Context) error {
	// Thousands of machines cause many changes. This delay collects them for one plan.
	_ = backoff.Sleep(ctx, min(2*l.planDuration, maxSettleTime))

	// The end of a job cancels waitCtx, and so ends awaitChange.
	waitCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	release := l.pool.onJobEnd(cancel)
	defer release()

	err := l.awaitChange(waitCtx)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	jobEnded := waitCtx.Err() != nil
	// If changes are lost, the machines may have changed, so a new plan is needed.
	if jobEnded || errors.Is(err, state.ErrHistoryLost) {
		return nil
	}

	return err
}

// awaitChange waits until the wanted machines or settings have changed, or until untilNextPlan requires a plan,
// which is sooner if an agent disappears. It ignores other changes of the watched records, such as the progress
// of starts. It returns state.ErrHistoryLost if the changes since the last plan are no longer available.
func (l *leader) awaitChange(ctx context.Context) error {
	w, err := l.State.Watch(ctx, l.last.baseRevision, state.WatchMachines(), state.WatchEnvironment(),
		state.WatchMachineAgents())
	if err != nil {
		return err
	}
	defer w.Close()

	for {
		limited, cancel := context.WithTimeout(ctx, l.untilNextPlan())
		changes, err := w.Changes(limited)
		planDue := limited.Err() != nil
		cancel()

		// This is also the case if ctx is done, which the caller checks.
		if planDue {
			return nil
		}
		if err != nil {
			return err
		}
		// Agents that come and go only change the time of the next plan.
		recordsChanged := l.noteAgents(changes)
		if !recordsChanged {
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

// untilNextPlan returns how long the leader can wait for a change before it must plan again. The wait ends
// with planInterval, or with the first backoff, retry, or query about an absent agent. It is never shorter
// than 10 ms.
func (l *leader) untilNextPlan() time.Duration {
	now := l.Now()
	wait := planInterval - now.Sub(l.last.at)
	wait = l.backoffs.untilDue(l.last.actions, now, wait)
	wait = l.untilAbsentDue(now, wait)
	for _, due := range []time.Time{l.last.nextRetry, l.listFailure.due} {
		if !due.IsZero() {
			wait = min(wait, due.Sub(now))
		}
	}

	return max(wait, 10*time.Millisecond)
}
