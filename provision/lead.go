package provision

import (
	"context"
	"errors"
	"slices"
	"time"

	"bijou/state"
)

// lead is one leadership's work. Its methods are for one goroutine, but for those
// that say that jobs call them.
type lead struct {
	Options
	leadership *state.Leadership
	crew       *crew
	records    *recorder
	owners     owners
	holds      holds
	absent     absences

	last   plan
	blind  blindness
	wrong  []string // what was said last to be wrong
	swept  time.Time
	labour time.Duration // how long the last look at everything took
}

// plan is what was read and decided last.
type plan struct {
	at       time.Time
	began    int64 // the revision before the provider was asked
	revision int64
	want     Want
	actions  []Action
	due      time.Time // when the first failed start is tried again; zero: none is
}

// run plans and obeys until ctx is done or the store fails it.
func (l *lead) run(ctx context.Context) error {
	for {
		begin := time.Now()
		if err := l.obey(ctx); err != nil {
			return err
		}
		l.labour = time.Since(begin)
		if err := l.await(ctx); err != nil {
			return err
		}
	}
}

// obey reads, plans, and puts the crew to work. On no knowledge of the instances
// nothing begins.
func (l *lead) obey(ctx context.Context) error {
	for _, o := range l.crew.survey() {
		l.settle(o)
	}
	began, err := readRevision(ctx, l.State)
	if err != nil {
		return err
	}
	now := l.Now()
	have, blind := l.instances(ctx)
	s, err := readSnapshot(ctx, l.State)
	if err != nil {
		return err
	}
	l.last = plan{at: now, began: began, revision: s.revision, want: s.want(now), due: s.due(now)}
	l.owners.learn(l.last.want.Machines)
	l.absent.noteAsked(now)
	var wrong []string
	if blind == nil {
		l.last.actions, wrong = Plan(l.last.want, have)
	} else {
		wrong = []string{blind.Error()}
	}
	if err := l.say(ctx, s, wrong); err != nil {
		return err
	}
	l.crew.abandon(l.last.want.lives)
	l.crew.offer(ctx, l.jobs(now, s))
	return nil
}

// jobs are what is to be done now.
func (l *lead) jobs(now time.Time, s snapshot) (jobs []job) {
	for _, a := range l.holds.filter(l.last.actions, now) {
		jobs = append(jobs, l.job(a))
	}
	if now.Sub(l.swept) >= sweepEvery {
		jobs = append(jobs, job{Action{Verb: sweep, Machine: string(sweep)}, func(ctx context.Context) error {
			err := l.State.Sweep(ctx, now)
			if err != nil && ctx.Err() == nil {
				l.Log.Warn("provisioner cannot sweep", "error", err)
			}
			return err
		}})
	}
	return jobs
}

// settle takes up how a job has ended. A start that failed is in the machine's
// record, with when it is tried again.
func (l *lead) settle(o outcome) {
	_, failed := errors.AsType[*startError](o.err)
	switch {
	case o.action.Verb == sweep:
		l.swept = l.Now()
	case failed:
		l.holds.forget(o.action)
	default:
		l.holds.done(o.action, l.Now())
	}
}

// await returns when something is to be decided anew: what is wanted has changed,
// a job has ended, an agent is gone, a failed start is due, or the interval is over.
func (l *lead) await(ctx context.Context) error {
	// What thousands of machines change all the time is looked at together.
	pause(ctx, min(2*l.labour, longestPause))
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	release := l.crew.whenDone(cancel)
	defer release()
	err := l.awaitChange(waiting)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if waiting.Err() != nil || errors.Is(err, state.ErrCompacted) {
		return nil
	}
	return err
}

// awaitChange returns when something else is wanted than was planned for, or it is
// time for the next plan. How far starts are, and what agents note of themselves, is
// in the same records and changes nothing. Of agents that were there before the
// provider was asked it wants to know when they go.
func (l *lead) awaitChange(ctx context.Context) error {
	w, err := l.State.Watch(ctx, l.last.began, state.WatchMachines(), state.WatchEnvironment(), state.WatchMachineAgents())
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		limit, cancel := context.WithTimeout(ctx, l.patience())
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
		if !l.last.want.equal(s.want(l.Now())) {
			return nil
		}
	}
}

// patience is how long nothing is to be done.
func (l *lead) patience() time.Duration {
	now := l.Now()
	wait := l.holds.next(l.last.actions, now, interval-now.Sub(l.last.at))
	wait = l.untilAbsentDue(now, wait)
	for _, due := range []time.Time{l.last.due, l.blind.due} {
		if !due.IsZero() {
			wait = min(wait, due.Sub(now))
		}
	}
	return max(wait, 10*time.Millisecond)
}

// pause waits, unless ctx ends it.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// equal says if the same is wanted.
func (w Want) equal(o Want) bool {
	return w.Environment == o.Environment && w.Harvest == o.Harvest && slices.Equal(w.Machines, o.Machines)
}

// starts says if there is such a machine, and the provider starts its instance.
func (w Want) starts(machine string) bool {
	return slices.ContainsFunc(w.Machines, func(m Wanted) bool { return m.ID == machine && m.Life != Dead && !m.Hosted })
}

// lives says if there is such a machine, and it is not dead.
func (w Want) lives(machine string) bool {
	return slices.ContainsFunc(w.Machines, func(m Wanted) bool { return m.ID == machine && m.Life != Dead })
}
