// Package uniter takes one unit through its life: it deploys the charm, runs the
// hooks in their order, keeps the queue of relation hooks, and resumes what an
// agent that died was in the middle of.
//
// Package decide says what is next; Run is the loop that reads what decides it, and
// executes its steps. The package knows neither machines nor sessions: agent hands it a way to commit that holds only
// while the process holds the machine's claim. Only package agent imports it.
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

// Options say which unit is taken through its life, and where.
type Options struct {
	State *state.State
	Unit  string
	// Update commits as long as this process holds the machine's claim.
	Update  state.Updater
	Folder  unitdir.Folder
	Tools   string                 // the folder with the hook tools
	Socket  func() (string, error) // makes the folder of the agent's socket, and returns the socket's path
	Limiter *HookLimiter
	Log     *slog.Logger
	Logs    *unitlog.Sender
	Fault   func(point string) // nil does nothing
	// NoteAttempt is called after every failure, with the time of the next attempt, and with
	// nil after every success.
	NoteAttempt func(ctx context.Context, err error, next time.Time)
	Loop        *pulse.Loop // may be nil
	SecretKeys  secret.Keeper
	Environment state.Environment // as it was when the agent began: its name and uuid
	// Nominate is called after each snapshot: the unit may lead its service. stays is false
	// for a unit that is to leave.
	Nominate func(stays bool)
}

// shutdownTimeout is how long the hook in flight may go on when its agent is told to end.
const shutdownTimeout = hookexec.TerminateTimeout

// uniter is the loop of one unit. All its fields belong to the goroutine that runs it.
type uniter struct {
	Options                   // its Update is commit
	rawUpdate   state.Updater // Update as Run got it
	server      *server.Server
	runner      hookexec.Runner
	output      *unitlog.Log
	watch       wake.Watch
	cache       snapshotCache
	running     *runningHook // nil: no hook is in flight
	ticket      *ticket      // of Limiter; nil: none was requested
	hookLock    *unitdir.HookLock
	turnBegan   time.Time // when hookLock was taken for a hook; zero: it is not
	hooksInTurn int       // that have begun with the ticket
	ending      bool      // no hook begins any more
	quiesced    bool      // the last hook that was due could not begin for somebody who has hookLock
	lastHookEnd time.Time

	madeHooksAt time.Time // the lastHookEnd after which the charm's folder was looked at; zero: never
	nextSeq     int64     // of the unit's next state.HookRun
	measured    []string  // the labels of its state in State.Metrics
	rebound     bool      // the unit's storage is where it is to be, after a reboot, too
	cleared     bool      // the unit is dead, and its folder is gone
}

// Run takes the unit through its life until it is gone (nil), ctx is done (its error), or the store is gone
// (state.ErrStoreGone).
//
// When ctx is done, a hook in flight gets 10 seconds to end, and its outcome is committed. After that its
// process group is killed; nothing of it is committed, and the next agent runs it again. If ctx is done
// because of state.ErrClaimLost, Run signals the hook to end at once, and commits nothing of it.
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
	srv, err := server.ListenFor(socket, outside{o})
	if err != nil {
		return err
	}

	u := &uniter{Options: o, rawUpdate: o.Update, server: srv, hookLock: hookLock, lastHookEnd: time.Now()}
	u.Update = u.commit
	u.output = o.Logs.Open(o.Unit, o.Folder.Log())
	defer u.close()
	defer u.clearMetrics()

	return u.run(ctx)
}

// close runs in the order of dependence. After a panic it also kills the hook in flight.
func (u *uniter) close() {
	u.killHook()
	u.watch.Close()
	_ = u.server.Close()
	u.runner.Close()
	u.output.Close()
	u.releaseTicket()
}

// run is the unit's loop. It first waits until the unit's directory agrees with restored records, then
// recovers from an agent that died, and then takes one step after another. After an error it waits, longer
// each time, and tries again.
func (u *uniter) run(ctx context.Context) error {
	defer u.Loop.MarkUnbounded()
	var retry backoff.Exponential

	for agreed, recovered := false, false; ; {
		u.Loop.MarkBusy()
		var err error
		finished := false
		switch {
		case !agreed:
			err = u.awaitRestoreCheck(ctx)
			agreed = err == nil
		case !recovered:
			err = u.recoverAtStart(ctx)
			recovered = err == nil
		default:
			finished, err = u.runStep(ctx)
		}

		switch {
		case ctx.Err() != nil:
			endErr := u.endHook(context.Cause(ctx))
			return errors.Join(ctx.Err(), endErr)
		case errors.Is(err, state.ErrStoreGone), finished:
			u.killHook()
			return err
		case err == nil:
			retry.Reset()
			u.NoteAttempt(ctx, u.checkSecretKeys(ctx), time.Time{})
		default:
			pause := retry.Next()
			u.NoteAttempt(ctx, err, now().Add(pause))
			u.Log.Debug("a step did not succeed", "error", err)
			u.Loop.MarkUnbounded()
			_ = backoff.Sleep(ctx, pause)
		}
	}
}

// runStep decides on one step and executes it. finished says that the unit is gone.
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
		u.Nominate(snap.Unit.Life == state.Alive)
	}
	if err := u.rebindStorage(snap); err != nil {
		return false, err
	}

	next, snap := decide.NextTogether(snap)
	u.cache.noteDecided(next, snap)
	u.Log.Debug("next", "step", next.String())
	return u.execute(ctx, next, snap)
}

// checkSecretKeys returns why the unit's secrets cannot be opened here.
func (u *uniter) checkSecretKeys(ctx context.Context) error {
	if len(u.cache.snap.Secrets.Records) == 0 {
		return nil
	}
	_, err := secret.SealerOf(ctx, u.SecretKeys)
	return err
}

// faultPoint marks a point at which a test may kill the process.
func (u *uniter) faultPoint(point string) {
	if u.Fault != nil {
		u.Fault(point)
	}
}

func (u *uniter) releaseTicket() {
	u.endTurn()
	if u.ticket != nil {
		u.Limiter.release(u.ticket)
		u.ticket = nil
		u.hooksInTurn = 0
	}
}

// quiescedPoll is how often a hook that may not run asks if it may.
const quiescedPoll = 250 * time.Millisecond

// maxTurn is how long hooks may begin one right after the other. Between two turns a process
// that waits for the unit to be quiet gets the lock.
const maxTurn = 5 * time.Second

// beginTurn takes the lock that hooks need, and reports whether a hook may run. None may run while the unit
// is quiesced.
func (u *uniter) beginTurn() (bool, error) {
	if !u.turnBegan.IsZero() {
		return true, nil
	}
	may, err := u.hookLock.TryBegin()
	if err != nil {
		return false, fmt.Errorf("cannot lock the unit's hooks: %w", err)
	}

	if !may {
		if !u.quiesced {
			u.Log.Info("a backup copies the unit's storage: no hook begins until it is done")
		}
		u.quiesced = true
		return false, nil
	}

	if u.quiesced {
		u.Log.Info("the backup has done with the unit's storage: hooks begin again")
	}
	u.quiesced = false
	u.turnBegan = time.Now()
	return true, nil
}

// endTurn gives back the lock of the unit's hooks, so that a backup of its storage can take it.
func (u *uniter) endTurn() {
	if u.turnBegan.IsZero() {
		return
	}

	if err := u.hookLock.End(); err != nil {
		u.Log.Error("cannot unlock the unit's hooks: a backup of its storage waits", "error", err)
	}
	u.turnBegan = time.Time{}
}

// waitForChange blocks until something changes. It also returns when the hook in flight ends, at until
// (zero: never), and when granted is closed (nil: never).
func (u *uniter) waitForChange(
	ctx context.Context,
	snap decide.Snapshot,
	until time.Time,
	granted <-chan struct{},
) error {
	var timeout <-chan time.Time
	if !until.IsZero() {
		timer := time.NewTimer(max(until.Sub(snap.Now), time.Millisecond))
		defer timer.Stop()
		timeout = timer.C
	}

	var ended <-chan struct{}
	if u.running != nil {
		ended = u.running.done
	}
	u.Loop.MarkUnbounded()

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

// renewWatch watches, from the revision on, all records that the unit's steps depend on.
func (u *uniter) renewWatch(ctx context.Context, snap decide.Snapshot, revision int64) error {
	scopes := []state.Scope{
		state.WatchUnit(u.Unit), state.WatchService(snap.Unit.Service), state.WatchEnvironment(),
	}
	var about []string
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
