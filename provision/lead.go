package provision

import (
	"context"
	"errors"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

// lead is one leadership's work.
type lead struct {
	Options
	leadership *state.Leadership
	crew       *crew
	held       map[string]hold // transient failures, by machine
	swept      time.Time
}

// hold is when a start that failed for the moment is tried again.
type hold struct {
	attempts int
	due      time.Time
}

// run plans and obeys until ctx is done or the store fails it.
func (l *lead) run(ctx context.Context) error {
	for {
		l.sweep(ctx)
		revision, err := l.obey(ctx)
		if err == nil {
			err = l.await(ctx, revision)
		}
		if err != nil {
			return err
		}
	}
}

// obey reads, plans, and puts the crew to work. It returns the revision planned on.
func (l *lead) obey(ctx context.Context) (int64, error) {
	l.settle(l.crew.survey())
	have, err := l.Provider.Instances(ctx)
	if err != nil {
		return 0, err
	}
	s, err := readSnapshot(ctx, l.State)
	if err != nil {
		return 0, err
	}
	for _, a := range Plan(l.wanted(s), have) {
		l.crew.begin(ctx, a.Machine, l.job(a, s))
	}
	return s.revision, nil
}

// wanted adds to the machines which of them failed and are not due.
func (l *lead) wanted(s snapshot) []Wanted {
	var want []Wanted
	for _, m := range s.machines {
		h, failed := l.held[m.ID]
		want = append(want, Wanted{
			ID: m.ID, Life: Life(m.Life), Instance: m.InstanceID, Units: s.units[m.ID], Hosted: m.ID == "0",
			Held: m.Status == state.MachineError || failed && l.Now().Before(h.due),
		})
	}
	return want
}

// await returns when the machines have changed, a job has ended, a failed start
// is due, or the interval is over.
func (l *lead) await(ctx context.Context, revision int64) error {
	limit, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	release := l.crew.whenDone(cancel)
	defer release()
	w, err := l.State.Watch(limit, revision, state.WatchMachines())
	if err == nil {
		defer w.Close()
		_, err = w.Next(limit)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if limit.Err() != nil || errors.Is(err, state.ErrCompacted) {
		return nil
	}
	return err
}

// patience is how long nothing is to be done.
func (l *lead) patience() time.Duration {
	wait := interval
	for _, h := range l.held {
		wait = min(wait, max(0, h.due.Sub(l.Now())))
	}
	return max(wait, 10*time.Millisecond)
}

// sweep has the crew remove what nothing refers to, from time to time.
func (l *lead) sweep(ctx context.Context) {
	if now := l.Now(); now.Sub(l.swept) >= sweepEvery {
		l.swept = now
		l.crew.begin(ctx, "sweep", func(ctx context.Context) error {
			err := l.State.Sweep(ctx, now)
			if err != nil && ctx.Err() == nil {
				l.Log.Warn("provisioner cannot sweep", "error", err)
			}
			return err
		})
	}
}

// snapshot is what is read of the state for one plan.
type snapshot struct {
	revision    int64
	environment state.Environment
	machines    []state.Machine
	units       map[string]int // by machine that is not alive
}

func readSnapshot(ctx context.Context, st *state.State) (s snapshot, err error) {
	err = st.View(ctx, func(v *state.View) error {
		if s.revision, err = v.Revision(); err != nil {
			return err
		}
		if s.environment, err = v.Environment(); err != nil {
			return err
		}
		if s.machines, err = v.Machines(); err != nil {
			return err
		}
		s.units = map[string]int{}
		for _, m := range s.machines {
			if m.Life == state.Alive { // only of those that go does Plan ask
				continue
			}
			units, err := v.MachineUnits(m.ID)
			if err != nil {
				return err
			}
			s.units[m.ID] = len(units)
		}
		return nil
	})
	return s, err
}

// spec says what instance a machine needs. The token is the same at every start,
// since ids are never used again.
func (s snapshot) spec(id string) provider.Spec {
	spec := provider.Spec{Environment: s.environment.UUID, Machine: id, Token: s.environment.UUID + "-" + id}
	for _, m := range s.machines {
		if m.ID == id {
			spec.Series, spec.Constraints, spec.Placement = m.Series, m.Constraints, m.Placement
		}
	}
	return spec
}
