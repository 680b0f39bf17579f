// Package uniter takes one unit through its life. It deploys the charm, runs the hooks in their order, keeps
// the queue of relation hooks, and resumes the step that a dead agent left unfinished.
//
// Run is the loop. It reads a snapshot, lets package decide choose the next step, and executes that step. The
// package does not handle machines or sessions. Its caller passes an Update function that commits only while
// the process holds the machine's claim.
package uniter

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"bijou/agent/hookexec"
	"bijou/agent/pulse"
	"bijou/agent/uniter/decide"
	"bijou/agent/unitlog"
	"bijou/agent/wake"
	"bijou/hookenv/server"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/secret"
	"bijou/state/secret/record"
	"bijou/state/unitdir"
)

// Options configure [Run].
type Options struct {
	State *state.State
	Unit  string
	// Update commits as long as this process holds the machine's claim.
	Update  state.Updater
	Folder  unitdir.Folder
	Tools   string                 // the directory with the hook tools
	Socket  func() (string, error) // creates the directory for the unit's socket, and returns the socket's path
	Limiter *HookLimiter
	Log     *slog.Logger
	Logs    *unitlog.Sender
	Fault   func(point string) // called at the points of agent.Fault; can be nil
	// NoteAttempt is called after each step, with the step's error or nil. After a failure, next is the time of
	// the next attempt.
	NoteAttempt func(ctx context.Context, err error, next time.Time)
	Loop        *pulse.Loop // can be nil
	SecretKeys  secret.Keeper
	Environment state.Environment // read when the agent started; Run uses only its name and UUID
	// Nominate is called after each snapshot of a unit that exists, to make the unit a candidate for the
	// leadership of its service. stays is false for a unit that is being removed.
	Nominate func(stays bool)
	// Withdraw is called instead of Nominate for a dead unit, which can no longer lead.
	Withdraw func()
}

// shutdownTimeout is how long the hook in flight can continue after its agent was told to stop.
const shutdownTimeout = hookexec.TerminateTimeout

// uniter is the loop of one unit. All its fields belong to the goroutine that runs it.
type uniter struct {
	Options                   // as passed to Run, except that Update is the method commit
	rawUpdate   state.Updater // the Update that was passed to Run
	server      *server.Server
	runner      hookexec.Runner
	output      *unitlog.Log
	watch       wake.Watch
	cache       snapshotCache
	running     *runningHook // the hook in flight, if any
	ticket      *ticket      // the unit's request to Limiter, if any
	hookLock    *unitdir.HookLock
	turnBegan   time.Time // when the unit took hookLock; zero if it does not hold it
	hooksInTurn int       // how many hooks have begun with the ticket
	agreed      bool      // the unit can continue: checkRestored has found no unaccepted difference
	recovered   bool      // the unit has recovered from the previous agent's end
	ending      bool      // the agent is stopping, so no hook can begin
	quiesced    bool      // another process held hookLock when the last hook was due
	lastHookEnd time.Time

	madeHooksAt time.Time // lastHookEnd when the charm's hooks were last listed; zero if never
	nextSeq     int64     // the number of the unit's next state.HookRun
	measured    []string  // the labels of the unit's state in State.Metrics
	rebound     bool      // this agent has bound the unit's storage to its locations
	cleared     bool      // the unit is dead, and its directory was removed
}

// Run takes the unit through its life. It returns nil once the unit is gone, an error that wraps ctx.Err()
// once ctx is done, or [state.ErrStoreGone] if the store no longer exists. It also returns an error if it
// cannot prepare the unit's directory or socket.
//
// When ctx is done, a hook in flight gets 10 seconds to end, and its outcome is committed. After that Run
// kills the hook's process group and commits none of its changes, and the next agent runs the hook again. If
// the hook is an action, Run instead commits that it has failed. If ctx is done because of
// [state.ErrClaimLost], Run signals the hook to end immediately, and commits none of its changes.
func Run(ctx context.Context, o Options) error {
	lock, err := o.Folder.Lock(ctx, o.Log)
	if err != nil {
		return err
	}
	defer lock.Close()

	hookLock, err := o.Folder.OpenHookLock()
	if err != nil {
		return err
	}
	defer hookLock.Close()
	if err := o.Folder.LinkTools(o.Tools); err != nil {
		return err
	}

	socket, err := o.Socket()
	if err != nil {
		return err
	}

	u := &uniter{Options: o, rawUpdate: o.Update, hookLock: hookLock, lastHookEnd: time.Now()}
	u.Update = u.commit // also updates the loop's cache
	if u.server, err = server.ListenFor(socket, u.outside()); err != nil {
		return err
	}
	u.output = o.Logs.Open(o.Unit, o.Folder.Log())
	defer u.close()
	defer u.clearMetrics()

	return u.run(ctx)
}

// close closes everything that Run has opened, except the locks of the unit's directory. It closes users before
// the resources that they use. After a panic it also kills the hook in flight.
func (u *uniter) close() {
	u.killHook()
	u.watch.Close()
	_ = u.server.Close() // the next agent replaces a socket that is left behind
	u.runner.Close()
	u.output.Close()
	u.releaseTicket()
}

// run is the unit's loop. It waits until the unit's directory agrees with restored records, recovers from an
// agent that died, and then takes one step after another. After an error it retries, with a pause that grows
// each time. It returns nil once the unit is gone, an error that wraps ctx.Err() once ctx is done, or
// [state.ErrStoreGone].
func (u *uniter) run(ctx context.Context) error {
	defer u.Loop.MarkUnbounded()
	var retry backoff.Exponential

	for {
		u.Loop.MarkBusy()
		finished, err := u.advance(ctx)
		if ctx.Err() != nil {
			endErr := u.endHook(context.Cause(ctx))
			return errors.Join(ctx.Err(), endErr)
		}
		if finished || errors.Is(err, state.ErrStoreGone) {
			u.killHook() // its outcome can no longer be recorded
			return err
		}

		if err == nil {
			retry.Reset()
			var noRetry time.Time // the loop does not pause
			// Without the secret keys the steps succeed, but hooks that use secrets fail. The status shows
			// that.
			u.NoteAttempt(ctx, u.checkSecretKeys(ctx), noRetry)
			continue
		}

		pause := retry.Next()
		u.NoteAttempt(ctx, err, now().Add(pause))
		u.Log.Debug("a step did not succeed", "error", err)
		u.Loop.MarkUnbounded()
		_ = backoff.Sleep(ctx, pause) // if ctx is done, the next iteration ends the loop
	}
}

// advance checks a restored unit, recovers the unit, or runs its next step, whichever must come first.
// finished is true once the unit is gone.
func (u *uniter) advance(ctx context.Context) (finished bool, err error) {
	if !u.agreed {
		err := u.awaitRestoreCheck(ctx)
		u.agreed = err == nil
		return false, err
	}

	if !u.recovered {
		err := u.recoverAtStart(ctx)
		u.recovered = err == nil
		return false, err
	}

	return u.runStep(ctx)
}

// runStep records the outcome of a hook that has ended. If there is none, it decides on one step and executes
// it. finished is true once the unit is gone.
func (u *uniter) runStep(ctx context.Context) (finished bool, err error) {
	if u.running != nil && u.running.hasEnded() {
		return false, u.recordOutcome(ctx)
	}
	snap, err := u.takeSnapshot(ctx)
	if err != nil {
		return false, err
	}

	u.measureUnit(snap)
	if !snap.Gone {
		u.updateCandidacy(snap.Unit.Life)
	}
	if err := u.rebindStorage(snap); err != nil {
		return false, err
	}

	next, snap := decide.NextTogether(snap)
	u.cache.noteDecided(next, snap) // if nothing has arrived, the members need no further comparison
	u.Log.Debug("next", "step", next.String())
	return u.execute(ctx, next, snap)
}

// updateCandidacy makes the unit a candidate for the leadership of its service. A unit that is being removed does
// not stay, so it leads only until another unit can take over. A dead unit cannot lead, and is withdrawn.
func (u *uniter) updateCandidacy(life state.Life) {
	if life == state.Dead {
		u.Withdraw()
		return
	}

	stays := life == state.Alive
	u.Nominate(stays)
}

// checkSecretKeys returns an error if the unit reads or manages secrets, and this process cannot open them.
func (u *uniter) checkSecretKeys(ctx context.Context) error {
	if len(u.cache.snap.Secrets.Records) == 0 {
		return nil
	}
	_, err := secret.SealerOf(ctx, u.SecretKeys)
	return err
}

// faultPoint marks a point at which a test can kill the process.
func (u *uniter) faultPoint(point string) {
	if u.Fault != nil {
		u.Fault(point)
	}
}

// releaseTicket ends the unit's turn, and returns its ticket to the limiter.
func (u *uniter) releaseTicket() {
	u.endTurn()
	if u.ticket != nil {
		u.Limiter.release(u.ticket)
		u.ticket = nil
		u.hooksInTurn = 0
	}
}

// quiescedPoll is the interval at which a quiesced unit checks whether its hooks can run again.
const quiescedPoll = 250 * time.Millisecond

// maxTurn is how long a unit can begin one hook after another before it gives up hookLock. Between two turns a
// process that waits to quiesce the unit can take the lock.
const maxTurn = 5 * time.Second

// beginTurn takes hookLock unless the unit already holds it, and reports whether a hook can run. No hook can
// run while the unit is quiesced.
func (u *uniter) beginTurn() (canBegin bool, err error) {
	if !u.turnBegan.IsZero() {
		return true, nil // the unit holds hookLock
	}
	locked, err := u.hookLock.TryBegin()
	if err != nil {
		return false, fmt.Errorf("cannot lock the unit's hooks: %w", err)
	}

	if !locked {
		if !u.quiesced {
			u.Log.Info("a backup copies the unit's storage: no hook begins until the copy is complete")
		}
		u.quiesced = true
		return false, nil
	}

	if u.quiesced {
		u.Log.Info("the backup has copied the unit's storage: hooks begin again")
	}
	u.quiesced = false
	u.turnBegan = time.Now()
	return true, nil
}

// endTurn releases hookLock, if the unit holds it, so that a backup of the unit's storage can take it.
func (u *uniter) endTurn() {
	if u.turnBegan.IsZero() {
		return
	}

	if err := u.hookLock.End(); err != nil {
		u.Log.Error("cannot unlock the unit's hooks: a backup of its storage waits", "error", err)
	}
	u.turnBegan = time.Time{}
}

// waitForChange blocks until a watched record changes, the hook in flight ends, the given time comes, or
// granted is closed. A zero time never comes, and a nil granted is never closed. If ctx is done, waitForChange
// returns its error.
func (u *uniter) waitForChange(
	ctx context.Context,
	snap decide.Snapshot,
	until time.Time,
	granted <-chan struct{},
) error {
	var timeout <-chan time.Time
	if !until.IsZero() {
		// The minimum keeps the loop from spinning if until has already come.
		timer := time.NewTimer(max(until.Sub(snap.Now), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}

	var ended <-chan struct{}
	if u.running != nil {
		ended = u.running.done
	}

	u.Loop.MarkUnbounded() // the wait can take any time
	select {
	case <-u.watch.Events():
	case <-granted:
	case <-ended:
	case <-timeout:
	case <-ctx.Done():
		return ctx.Err()
	}

	return nil
}

// renewWatch watches all records on which the unit's steps depend, after the given revision. It keeps the
// current watch if the unit's relations, secrets and storage are still the same. For a dead unit, a watch of
// only the unit itself is enough.
func (u *uniter) renewWatch(ctx context.Context, snap decide.Snapshot, revision int64) error {
	if snap.Unit.Life == state.Dead {
		return u.watch.Renew(ctx, u.State, revision, nil, state.WatchUnit(u.Unit))
	}

	scopes := []state.Scope{
		state.WatchUnit(u.Unit), state.WatchService(snap.Unit.Service), state.WatchEnvironment(),
	}
	var about []string // the ids that differ between two watches; the scopes above are always the same
	for _, id := range slices.Sorted(maps.Keys(snap.Relations)) {
		scopes = append(scopes, state.WatchMembers(id, snap.Relations[id].RemoteService))
		about = append(about, strconv.Itoa(id))
	}
	if ids := snap.Secrets.IDs(); len(ids) > 0 {
		scopes = append(scopes, record.Watch(ids))
		about = append(about, ids...)
	}
	if len(snap.Storages) > 0 {
		var ids []string
		for _, s := range snap.Storages {
			ids = append(ids, s.ID)
		}
		scopes = append(scopes, state.WatchStorages(ids))
		about = append(about, ids...)
	}

	return u.watch.Renew(ctx, u.State, revision, about, scopes...)
}
