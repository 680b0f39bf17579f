package juju

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/multicall/console"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/status"
	"bijou/state/text"
)

// waitFlags let a command return once what follows from it is done.
type waitFlags struct {
	Wait    bool          `help:"Wait until the effects are done, with the exit codes of juju wait."`
	Timeout time.Duration `placeholder:"DURATION" help:"Wait no longer than that; implies --wait."`
}

func (w waitFlags) flags() waitFlags { return w }

// awaiting is a command that may wait.
type awaiting interface{ flags() waitFlags }

// noteAffected notes the services or units that the command has changed, and the state that they will
// reach.
func (o *operator) noteAffected(until string, names ...string) {
	o.until = until
	o.affected = append(o.affected, names...)
}

func (o *operator) awaitAffected(w waitFlags) error {
	if len(o.affected) == 0 || !w.Wait && w.Timeout == 0 {
		return nil
	}
	return o.openChosen(func(s *state.State) error {
		return (&settleWaiter{o: o, state: s, globs: o.affected, until: o.until, timeout: w.Timeout}).wait()
	})
}

type waitCmd struct {
	Globs   []string      `arg:"" optional:"" name:"glob" help:"Only the applications and units that match (mysql, 'wordpress/*'); default: all."`
	For     string        `enum:"idle,active,blocked,waiting,maintenance,error,gone" default:"idle" placeholder:"STATE" help:"Wait for this state. idle: started, with no hook left to run; active, blocked, waiting, maintenance: idle, and each with that status; error: each in error; gone: all removed. Default idle."`
	Timeout time.Duration `placeholder:"DURATION" help:"Give up after that long (30s, 10m); default: never."`
}

// Run waits for the units, and prints only progress.
func (c waitCmd) Run(o *operator) error {
	if err := checkGlobs(c.Globs); err != nil {
		return console.Usage(err)
	}
	return o.openChosen(func(s *state.State) error {
		return (&settleWaiter{o: o, state: s, globs: c.Globs, until: c.For, timeout: c.Timeout}).wait()
	})
}

// What units are waited for to be.
const (
	untilIdle   = "idle"
	untilActive = "active"
	untilError  = "error"
	untilGone   = "gone"
)

// waitStates returns the states that juju wait can wait for.
func waitStates() []string {
	return []string{untilIdle, untilActive, "blocked", "waiting", "maintenance", untilError, untilGone}
}

// isWorkloadStatus reports whether units say themselves that they are in the state.
func isWorkloadStatus(until string) bool {
	return !slices.Contains([]string{untilIdle, untilError, untilGone}, until)
}

// exitTimeout is the exit code of a wait whose time is up.
const exitTimeout = 3

// settleWaiter waits until units have come where an operator wants them.
type settleWaiter struct {
	o       *operator
	state   *state.State
	globs   []string // none: everything
	until   string
	timeout time.Duration // 0: none
	// drains: what is in error is left behind, and the time-out begins again with each change.
	drains bool

	seen    settlement
	most    int       // the most units that there were
	changed time.Time // when what is waited for was seen to change last
	noted   bool      // since then
}

// settlement is how far the units are, at one moment.
type settlement struct {
	units     int
	services  int
	running   bool     // one of them runs something
	failed    []string // what is in error, and why
	pending   []string // what is not there yet, and why
	unmatched []string
}

// silenceTimeout is how long nothing may change before it is noted what is waited for.
const silenceTimeout = 5 * time.Second

func (s settlement) String() string {
	return fmt.Sprintf("%s of %s", formatCount(s.units, "unit"), formatCount(s.services, "application"))
}

// wait waits until all units have reached the wanted state, and reports why some have not.
func (w *settleWaiter) wait() error {
	limit := w.timeout
	poll := silenceTimeout
	if w.drains {
		limit = 0
		poll = min(poll, cmp.Or(w.timeout, poll))
	}
	ctx, stop := withTimeout(w.o.ctx, limit)
	defer stop()

	f := follower{
		o:              w.o,
		state:          w.state,
		scopes:         []state.Scope{state.WatchAll()},
		settleInterval: settleInterval,
		pollTimeout:    func() time.Duration { return poll },
	}

	f.read = func(v *state.View) (func() error, error) {
		now, err := w.readSettlement(v)
		return func() error { return w.note(now, stop) }, err
	}
	err := f.follow(ctx)

	// This removes the progress bar.
	w.o.reportSteps(state.Steps{What: "units " + w.until, Done: w.most, Total: w.most})

	switch {
	case err != nil:
		return err
	case len(w.seen.unmatched) > 0:
		return unmatchedError("application or unit", w.seen.unmatched)
	case len(w.seen.failed) > 0 && !w.drains:
		return console.Hint(fmt.Errorf("in error: %s", listReasons(w.seen.failed)),
			"juju status shows each one's last message, its next retry, and the command that tells more")
	case len(w.seen.pending) == 0 && !w.changed.IsZero():
		return nil
	case w.o.ctx.Err() != nil && w.changed.IsZero():
		return w.o.ctx.Err()
	case w.o.ctx.Err() != nil:
		return fmt.Errorf("interrupted while it waited for %s", listReasons(w.seen.pending))
	case w.drains:
		return console.Hint(fmt.Errorf("no progress for %s, and still %s: %s",
			w.timeout, w.seen, listReasons(w.seen.pending)),
			"--timeout waits longer for the next change")
	case w.changed.IsZero():
		return console.Exit(exitTimeout, fmt.Errorf("after %s the state had not been read", w.timeout))
	}

	return console.Exit(exitTimeout,
		fmt.Errorf("after %s it still waits for %s", w.timeout, listReasons(w.seen.pending)))
}

// note stops the wait once nothing is pending.
func (w *settleWaiter) note(now settlement, stop func()) error {
	if !slices.Equal(now.pending, w.seen.pending) || w.changed.IsZero() {
		w.changed = time.Now()
		w.noted = false
	}
	w.seen = now
	w.most = max(w.most, now.units)
	stalled := w.drains && w.timeout > 0 && !now.running && time.Since(w.changed) >= w.timeout
	if len(now.pending) == 0 || stalled || !w.drains && len(now.failed)+len(now.unmatched) > 0 {
		stop()
		return nil
	}

	w.o.reportSteps(state.Steps{
		What:  "units " + w.until,
		Done:  max(0, w.most-len(now.pending)),
		Total: w.most,
	})

	if !w.noted && time.Since(w.changed) >= silenceTimeout {
		w.noted = true
		if w.drains {
			w.o.note("waiting for %s: %s", now, listReasons(now.pending))
		} else {
			w.o.note("waiting for %s", listReasons(now.pending))
		}
	}

	return nil
}

// readSettlement reads how far the units are from the wanted state: those that failed, and those that are
// not there yet.
func (w *settleWaiter) readSettlement(v *state.View) (now settlement, err error) {
	s, err := status.Read(v, status.Options{Now: time.Now(), Globs: w.globs})
	if err != nil {
		return now, err
	}

	for _, what := range s.Damage {
		now.failed = append(now.failed, "the state is damaged: "+what)
	}
	if w.until != untilGone {
		now.unmatched = s.Unmatched
	}
	units := allUnits(s)
	now.units = len(units)
	now.services = len(s.Services)

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		u := units[name]
		why, failed := u.WaitReason()
		now.running = now.running || u.Running != nil
		if m := s.Machines[u.Machine]; m.State == state.MachineError {
			why = fmt.Sprintf("machine %s: %s", u.Machine, text.FirstLine(m.Error))
			failed = true
		}

		switch {
		case failed && w.until == untilError:
			// The command waits for this.
		case w.until == untilError:
			now.pending = append(now.pending, name+" (not in error)")
		case failed:
			now.failed = append(now.failed, name+" ("+why+")")
		case w.until == untilGone || u.State != state.UnitStarted || u.Running != nil || u.Life == state.Dying:
			now.pending = append(now.pending, name+" ("+why+")")
		case isWorkloadStatus(w.until) && (u.Workload == nil || u.Workload.Current != w.until):
			now.pending = append(now.pending, name+" "+workloadReason(u.Workload))
		}
	}

	if w.until == untilGone {
		for _, name := range slices.Sorted(maps.Keys(s.Services)) {
			if len(s.Services[name].Units) == 0 && len(now.failed) == 0 { // or else its relations wait for those
				now.pending = append(now.pending, name)
			}
		}
		return now, nil
	}

	if w.until == untilError {
		return now, nil
	}
	return now, w.addOwed(v, units, &now)
}

// addOwed asks the units' agents, in effect, once all look settled: that costs more reads.
func (w *settleWaiter) addOwed(v *state.View, units map[string]status.Unit, now *settlement) error {
	if len(now.pending)+len(now.failed) > 0 {
		return nil
	}

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		owed, err := w.o.parts.Owed(v, name)
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}

		if owed != "" {
			now.pending = append(now.pending, name+" (next: "+owed+")")
		}
	}

	return nil
}

func workloadReason(w *status.Workload) string {
	if w == nil {
		return "(it has not set its status)"
	}
	return "(" + strings.TrimSuffix(w.Current+": "+text.FirstLine(w.Message), ": ") + ")"
}

func listReasons(reasons []string) string {
	const enough = 10
	if more := len(reasons) - enough; more > 0 {
		return strings.Join(reasons[:enough], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(reasons, "; ")
}
