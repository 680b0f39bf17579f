package uniter

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"bijou/agent/hookexec"
	"bijou/agent/pace"
	"bijou/agent/pulse"
	"bijou/agent/unitlog"
	"bijou/agent/wake"
	"bijou/hookenv/server"
	"bijou/state"
)

// Options say which unit is taken through its life, and where.
type Options struct {
	State *state.State
	Unit  string
	// Update commits as long as this process holds the machine's claim.
	Update state.Updater
	Folder Folder
	Tools  string                 // the folder with the hook tools
	Socket func() (string, error) // makes the folder for it, and says where the hook tools find the agent
	Slots  *Slots
	Log    *slog.Logger
	Fault  func(point string) // nil does nothing
	// Trouble is told of every failure, with when the next try is due, and with nil of
	// every success.
	Trouble func(ctx context.Context, err error, next time.Time)
	// Loop is told of each turn; nil: nobody wishes to know.
	Loop *pulse.Loop
	// Stand is told after each snapshot that the unit may lead its service, and if
	// it is there to stay.
	Stand func(stays bool)
}

// grace is how long a hook in flight may go on when its agent is told to end.
const grace = hookexec.Grace

// uniter is one unit's loop. All its fields belong to the goroutine that runs it.
type uniter struct {
	Options   // but its Update is commit
	announced state.Updater
	server    *server.Server
	runner    hookexec.Runner
	output    *unitlog.Log
	watch     wake.Watch
	sight     sight
	hook      *flight // nil: no hook is in flight
	turn      turn    // of Slots; nil: none is asked for
	lastHook  time.Time
	runs      int64 // how many hooks the unit's history counts
}

// Run takes the unit through its life until it is gone (nil), ctx is done (its
// error), or the store is gone (state.ErrStoreGone).
//
// When ctx is done, a hook in flight gets 10 seconds to end, and its outcome is
// committed. After that its process group is killed; nothing of it is committed,
// and the next agent runs it again. Where it is done because of state.ErrClaimLost, the
// hook is told to end at once, and nothing of it is committed.
func Run(ctx context.Context, o Options) error {
	lock, err := o.Folder.Lock(ctx, o.Log)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := o.Folder.linkTools(o.Tools); err != nil {
		return err
	}
	socket, err := o.Socket()
	if err != nil {
		return err
	}
	srv, err := server.Listen(socket)
	if err != nil {
		return err
	}
	u := &uniter{Options: o, announced: o.Update, server: srv, lastHook: time.Now()}
	u.Update = u.commit
	u.output = unitlog.Open(unitlog.Options{Unit: o.Unit, Path: o.Folder.Log(), State: o.State, Log: o.Log})
	defer u.close()
	return u.run(ctx)
}

// close ends what the loop has opened, in the order in which it depends on each
// other; after a panic also the hook in flight.
func (u *uniter) close() {
	u.abort()
	u.watch.Close()
	_ = u.server.Close()
	u.runner.Close()
	u.output.Close()
	u.release()
}

// run recovers, and then goes step by step.
func (u *uniter) run(ctx context.Context) error {
	defer u.Loop.Rest()
	var again pace.Pacer
	for agreed, recovered := false, false; ; {
		u.Loop.Turn()
		var err error
		finished := false
		switch {
		case !agreed:
			err = u.awaitAgreement(ctx)
			agreed = err == nil
		case !recovered:
			err = u.recover(ctx)
			recovered = err == nil
		default:
			finished, err = u.step(ctx)
		}
		switch {
		case ctx.Err() != nil:
			return errors.Join(ctx.Err(), u.shutdown(context.Cause(ctx)))
		case errors.Is(err, state.ErrStoreGone), finished:
			u.abort()
			return err
		case err == nil:
			again.Reset()
			u.Trouble(ctx, nil, time.Time{})
		default:
			pause := again.Next()
			u.Trouble(ctx, err, now().Add(pause))
			u.Log.Debug("a step did not succeed", "error", err)
			u.Loop.Rest()
			_ = pace.Sleep(ctx, pause)
		}
	}
}

// step reads a snapshot, asks what is next, and does exactly that.
func (u *uniter) step(ctx context.Context) (finished bool, err error) {
	if u.hook != nil && u.hook.ended() {
		return false, u.conclude(ctx)
	}
	snap, err := u.read(ctx)
	if err != nil {
		return false, err
	}
	if !snap.Gone {
		u.Stand(snap.Unit.Life == state.Alive)
	}
	next := Next(snap)
	u.Log.Debug("next", "step", next.String())
	return u.obey(ctx, next, snap)
}

// obey does one step.
func (u *uniter) obey(ctx context.Context, next Step, snap Snapshot) (finished bool, err error) {
	if _, ok := next.(RunHook); !ok && u.hook == nil {
		u.release()
	}
	switch s := next.(type) {
	case Wait:
		return false, u.wait(ctx, snap, s.Until, nil)
	case DeployCharm:
		u.Loop.Rest() // a big charm takes its time
		return false, u.deploy(ctx, s.URL)
	case Enqueue:
		return false, u.enqueue(ctx, s.Arrivals)
	case EnterRelation:
		return false, u.enter(ctx, s.Relation, snap.Hooks.created(s.Relation.Name))
	case RunHook:
		if u.turn == nil {
			u.turn = u.Slots.ask()
		}
		if !u.turn.granted() {
			return false, u.wait(ctx, snap, time.Time{}, u.turn)
		}
		err := u.begin(ctx, s, snap)
		if err != nil {
			u.release() // others may be able to run theirs
		}
		return false, err
	case GiveUp:
		return false, u.giveUp(ctx, *snap.Uniter.Op)
	case CutShort:
		u.hook.cutShort(s.Why)
		return false, nil
	case Resolve:
		return false, u.resolve(ctx, s.Relation)
	case LeaveRelation:
		return false, u.leave(ctx, s.Relation)
	case Retire:
		return false, u.retire(ctx)
	case Finish:
		return u.finish(ctx, snap)
	}
	panic("internal error: unknown step " + next.String())
}

// finish removes what is left of the unit: its records, and then its folder. A
// hook that still runs was orphaned by a forced removal.
func (u *uniter) finish(ctx context.Context, snap Snapshot) (bool, error) {
	u.abort()
	if !snap.Gone {
		err := u.record(ctx, "dead", func(tx *state.Tx) error {
			err := tx.SetUnitDead(u.Unit)
			if errors.Is(err, state.ErrNotFound) {
				return nil
			}
			return err
		})
		if err == nil {
			err = state.RemoveUnit(ctx, u.recording("remove"), u.Unit)
		}
		if err != nil {
			return false, err
		}
	}
	u.output.Close()
	u.fault("before-clear")
	if err := u.Folder.clear(); err != nil {
		u.Log.Error("cannot remove the unit's folder", "error", err)
	}
	u.fault("after-clear")
	u.Log.Info("the unit is gone")
	return true, nil
}

// fault is a named point at which a test may end the process.
func (u *uniter) fault(point string) {
	if u.Fault != nil {
		u.Fault(point)
	}
}

// release gives the hook slot back, if one was asked for.
func (u *uniter) release() {
	if u.turn != nil {
		u.Slots.giveBack(u.turn)
		u.turn = nil
	}
}
