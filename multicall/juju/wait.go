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

// waitFlags are the flags of commands that can wait until their effects are done.
type waitFlags struct {
	Wait    bool          `help:"Wait until the effects are done, with the exit codes of juju wait."`
	Timeout time.Duration `placeholder:"DURATION" help:"Wait at most this long; implies --wait."`
}

// flags implements awaiting for every command that embeds the flags.
func (w waitFlags) flags() waitFlags { return w }

// awaiting is a command with [waitFlags].
type awaiting interface{ flags() waitFlags }

// noteAffected records the services or units that the command has changed, and the state that they will reach,
// for --wait.
func (o *operator) noteAffected(until string, names ...string) {
	o.until = until
	o.affected = append(o.affected, names...)
}

// awaitAffected waits for the services and units that the command has changed. It does nothing without --wait or
// --timeout.
func (o *operator) awaitAffected(w waitFlags) error {
	wantsWait := w.Wait || w.Timeout != 0
	if len(o.affected) == 0 || !wantsWait {
		return nil
	}
	return o.openChosen(func(s *state.State) error {
		return (&settleWaiter{o: o, state: s, globs: o.affected, until: o.until, timeout: w.Timeout}).wait()
	})
}

type waitCmd struct {
	Globs   []string      `arg:"" optional:"" name:"glob" help:"Wait only for the applications and units that match (mysql, 'wordpress/*'); default: all."`
	For     string        `enum:"idle,active,blocked,waiting,maintenance,error,gone" default:"idle" placeholder:"STATE" help:"Wait for this state. idle: started, with no hook left to run; active, blocked, waiting, maintenance: idle, and each with that status; error: each in error; gone: all removed. Default idle."`
	Timeout time.Duration `placeholder:"DURATION" help:"Give up after this time (30s, 10m); default: never."`
}

// Run waits until the applications and units that match, or all of them, have reached the state. It prints only
// progress.
func (c waitCmd) Run(o *operator) error {
	if err := checkGlobs(c.Globs); err != nil {
		return console.Usage(err)
	}
	return o.openChosen(func(s *state.State) error {
		return (&settleWaiter{o: o, state: s, globs: c.Globs, until: c.For, timeout: c.Timeout}).wait()
	})
}

// These are states for which juju wait can wait.
const (
	untilIdle   = "idle"
	untilActive = "active"
	untilError  = "error"
	untilGone   = "gone"
)

// waitStates returns the states for which juju wait can wait.
func waitStates() []string {
	return []string{untilIdle, untilActive, "blocked", "waiting", "maintenance", untilError, untilGone}
}

// isWorkloadStatus reports whether the state is a status that a charm sets, such as active.
func isWorkloadStatus(until string) bool {
	return !slices.Contains([]string{untilIdle, untilError, untilGone}, until)
}

// exitTimeout is the exit code of a wait that has timed out.
const exitTimeout = 3

// settleWaiter waits until units have reached the state that an operator has named.
type settleWaiter struct {
	o       *operator
	state   *state.State
	globs   []string // empty for everything
	until   string
	timeout time.Duration // 0 for no limit
	// If drains is set, the waiter ignores units in error, and restarts the timeout after each change.
	drains bool

	seen    settlement // the progress at the last read
	most    int        // the largest number of units seen so far
	changed time.Time  // when seen.pending changed last; zero before the first read
	// pendingShown is set if the pending units have been printed since changed.
	pendingShown bool
}

// settlement is the progress of the units at one moment.
type settlement struct {
	units     int
	services  int
	running   bool     // whether any unit runs a hook, an action or a command
	failed    []string // units in error and damage of the state, with the reasons
	pending   []string // units and services that have not reached the state, with the reasons
	unmatched []string
}

// silenceTimeout is the time without changes after which wait prints the units for which it waits.
const silenceTimeout = 5 * time.Second

// String returns the numbers of units and applications.
func (s settlement) String() string {
	return fmt.Sprintf("%s of %s", formatCount(s.units, "unit"), formatCount(s.services, "application"))
}

// wait waits until all units have reached the wanted state. It returns an error that explains why some units
// have not reached it. A waiter with drains set has no time limit as long as there is progress, and ignores
// units in error.
func (w *settleWaiter) wait() error {
	limit := w.timeout
	poll := silenceTimeout
	if w.drains {
		// The timeout begins again with each change, so ctx has no limit. handleProgress stops the wait instead. It
		// must be called at least once in each timeout.
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
		progress, err := w.readSettlement(v)
		return func() error { return w.handleProgress(progress, stop) }, err
	}
	// follow also returns nil if the wait was interrupted or the time is over. outcome then finds the reason.
	err := f.follow(ctx)

	// This removes the progress bar.
	w.o.reportSteps(state.Steps{What: "units " + w.until, Done: w.most, Total: w.most})
	if err != nil {
		return err
	}
	return w.outcome()
}

// outcome returns nil if the last read has found all units in the wanted state, and otherwise the reason why the
// wait has ended. For a waiter with drains set, units in error do not count.
func (w *settleWaiter) outcome() error {
	wasRead := !w.changed.IsZero()
	interruptErr := w.o.ctx.Err()

	switch {
	case len(w.seen.unmatched) > 0:
		return unmatchedError("application or unit", w.seen.unmatched)
	case len(w.seen.failed) > 0 && !w.drains:
		return console.Hint(fmt.Errorf("in error: %s", listReasons(w.seen.failed)),
			"juju status shows the last message and the next retry of each, and a command for more details")
	case len(w.seen.pending) == 0 && wasRead:
		return nil
	case interruptErr != nil && !wasRead:
		return interruptErr
	case interruptErr != nil:
		return fmt.Errorf("interrupted while waiting for %s", listReasons(w.seen.pending))
	case w.drains:
		return console.Hint(fmt.Errorf("no progress for %s, and still %s: %s",
			w.timeout, w.seen, listReasons(w.seen.pending)),
			"to wait longer for progress: --timeout DURATION")
	case !wasRead:
		return console.Exit(exitTimeout, fmt.Errorf("the state could not be read within %s", w.timeout))
	}

	return console.Exit(exitTimeout,
		fmt.Errorf("after %s, still waiting for %s", w.timeout, listReasons(w.seen.pending)))
}

// handleProgress records and shows the progress, and always returns nil. It calls stop once nothing is pending, or
// waiting is useless. A waiter with drains set gives up after the timeout without changes, unless a unit runs a hook,
// an action or a command. Any other waiter gives up once a unit has failed, or a pattern matches nothing.
func (w *settleWaiter) handleProgress(progress settlement, stop func()) error {
	if !slices.Equal(progress.pending, w.seen.pending) || w.changed.IsZero() {
		w.changed = time.Now()
		w.pendingShown = false
	}
	w.seen = progress
	w.most = max(w.most, progress.units)

	hasTimedOut := w.timeout > 0 && time.Since(w.changed) >= w.timeout
	isStalled := w.drains && hasTimedOut && !progress.running
	isHopeless := !w.drains && len(progress.failed)+len(progress.unmatched) > 0
	if len(progress.pending) == 0 || isStalled || isHopeless {
		stop()
		return nil
	}

	w.o.reportSteps(state.Steps{
		What:  "units " + w.until,
		Done:  max(0, w.most-len(progress.pending)),
		Total: w.most,
	})

	if !w.pendingShown && time.Since(w.changed) >= silenceTimeout {
		w.pendingShown = true
		if w.drains {
			w.o.note("waiting for %s: %s", progress, listReasons(progress.pending))
		} else {
			w.o.note("waiting for %s", listReasons(progress.pending))
		}
	}

	return nil
}

// readSettlement reads which units have failed, which have not reached the wanted state yet, and which patterns
// match nothing. Damage of the state counts as a failure. If everything must be gone, a service without units is also
// pending, unless something has failed.
func (w *settleWaiter) readSettlement(v *state.View) (progress settlement, err error) {
	s, err := status.Read(v, status.Options{Now: time.Now(), Globs: w.globs})
	if err != nil {
		return progress, err
	}

	for _, part := range s.Damage {
		progress.failed = append(progress.failed, "the state is damaged: "+part)
	}
	// A unit that is gone matches nothing, as it should.
	if w.until != untilGone {
		progress.unmatched = s.Unmatched
	}
	units := allUnits(s)
	progress.units = len(units)
	progress.services = len(s.Services)

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		u := units[name]
		progress.running = progress.running || u.Running != nil
		w.addUnit(name, u, s.Machines[u.Machine], &progress)
	}

	switch w.until {
	case untilError:
		// The next steps of agents do not matter for this state.
		return progress, nil
	case untilGone:
		for _, name := range slices.Sorted(maps.Keys(s.Services)) {
			// While units are in error, a service may wait for them to leave its relations.
			if len(s.Services[name].Units) == 0 && len(progress.failed) == 0 {
				progress.pending = append(progress.pending, name)
			}
		}
		return progress, nil
	}

	err = w.addOwed(v, units, &progress)
	return progress, err
}

// addUnit adds the unit, whose machine is m, to the failed or the pending units of progress. It adds nothing
// if the unit has reached the wanted state.
func (w *settleWaiter) addUnit(name string, u status.Unit, m status.Machine, progress *settlement) {
	why, failed := u.WaitReason()
	if m.State == state.MachineError {
		why = fmt.Sprintf("machine %s: %s", u.Machine, text.FirstLine(m.Error))
		failed = true
	}

	isBusy := u.State != state.UnitStarted || u.Running != nil || u.Life == state.Dying
	hasStatus := u.Workload != nil && u.Workload.Current == w.until

	switch {
	case failed && w.until == untilError:
		// The command waits for exactly this state.
	case w.until == untilError:
		progress.pending = append(progress.pending, name+" (not in error)")
	case failed:
		progress.failed = append(progress.failed, name+" ("+why+")")
	case w.until == untilGone || isBusy:
		progress.pending = append(progress.pending, name+" ("+why+")")
	case isWorkloadStatus(w.until) && !hasStatus:
		progress.pending = append(progress.pending, name+" "+workloadReason(u.Workload))
	}
}

// addOwed adds the units whose agents still have a next step. It does this only if no unit is pending or failed,
// since it needs many reads.
func (w *settleWaiter) addOwed(v *state.View, units map[string]status.Unit, progress *settlement) error {
	if len(progress.pending)+len(progress.failed) > 0 {
		return nil
	}

	for _, name := range slices.SortedFunc(maps.Keys(units), charm.CompareUnits) {
		owed, err := w.o.parts.Owed(v, name)
		// The agent of a unit that is gone has nothing left to do.
		if err != nil && !errors.Is(err, state.ErrNotFound) {
			return err
		}

		if owed != "" {
			progress.pending = append(progress.pending, name+" (next: "+owed+")")
		}
	}

	return nil
}

// workloadReason returns the status that the charm has set, in parentheses.
func workloadReason(w *status.Workload) string {
	if w == nil {
		return "(it has not set its status)"
	}
	return "(" + strings.TrimSuffix(w.Current+": "+text.FirstLine(w.Message), ": ") + ")"
}

// listReasons returns the first ten reasons as text, and the number of all further ones.
func listReasons(reasons []string) string {
	const maxListed = 10
	if more := len(reasons) - maxListed; more > 0 {
		return strings.Join(reasons[:maxListed], "; ") + fmt.Sprintf("; and %d more", more)
	}
	return strings.Join(reasons, "; ")
}
