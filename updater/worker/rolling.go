package worker

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/activity"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// recheckInterval is how often a worker that waits for its turn checks the others'
// members, of which the store tells nothing.
const recheckInterval = time.Second

// unhealthyTimeout is how long a member that runs may be unhealthy before it counts as down.
const unhealthyTimeout = 30 * time.Second

func (w *worker) runRolling(ctx context.Context, c release.Component, r record.Request) error {
	if err := w.o.Server.Prepare(ctx, c); err != nil {
		return err
	}
	said := MoveDone
	doing := activity.Begin(ctx, "rolls %s", c.Name)
	defer doing.End()
	var ill time.Time // since when
	for {
		m, revision, err := w.readRolling(ctx, c, r)
		if err != nil {
			return err
		}
		if m.Healthy {
			ill = time.Time{}
		} else if ill.IsZero() {
			ill = time.Now()
		}
		m.Running = m.Running && time.Since(ill) < unhealthyTimeout
		move := NextRolling(m)
		if move != said {
			slog.Info("rolling", "component", c.Name, "move", string(move), "others", m.HealthyOthers, "well", m.Healthy, "needed", m.NeedsUpdate)
			said = move
		}
		if move == MoveWait {
			doing.Wait(m.describeWait())
		} else {
			doing.Say("rolls %s", c.Name)
		}
		switch move {
		case MoveDone:
			return nil
		case MoveTake, MoveGive:
			err = w.moveTurn(ctx, c.Name, r, move)
		case MoveGo:
			err = w.o.Server.Update(ctx, c)
		default:
			err = w.awaitChange(ctx, revision, keys.Turn(c.Name))
		}
		if err != nil {
			return err
		}
	}
}

// readRolling does not need the others' health for a member that needs nothing, if there
// is no way to ask for it.
func (w *worker) readRolling(ctx context.Context, c release.Component, r record.Request) (m RollingSnapshot, revision int64, err error) {
	m = RollingSnapshot{LRN: w.o.LRN, Servers: r.Servers}
	var present map[int]record.Presence
	err = retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			var errs [3]error
			m.Turn, errs[0] = updater.ReadKey[record.Turn](v, keys.Turn(c.Name))
			present, errs[1] = updater.PeekServers[record.Presence](v, keys.Presences)
			revision, errs[2] = v.Revision()
			return cmp.Or(errs[:]...)
		})
	})
	if err == nil {
		m.NeedsUpdate, err = w.o.Server.NeedsUpdate(ctx, c)
	}
	if err != nil {
		return m, 0, err
	}
	m.Healthy = w.o.Server.CheckHealth(ctx, c) == nil
	m.Running = !m.Healthy && w.o.Server.IsRunning(ctx, c)
	if m.OthersChecked = c.Members != nil; m.OthersChecked || m.NeedsUpdate || !m.Healthy {
		m.Unhealthy = w.checkOthers(ctx, c, r, present)
		m.HealthyOthers = len(r.Servers) - 1 - len(m.Unhealthy)
	}
	return m, revision, ctx.Err()
}

// checkOthers returns the other servers' unhealthy members. Where there is no way to ask
// them, those count as healthy whose worker lives.
func (w *worker) checkOthers(ctx context.Context, c release.Component, r record.Request, present map[int]record.Presence) map[int]error {
	others := slices.DeleteFunc(slices.Clone(r.Servers), func(lrn int) bool { return lrn == w.o.LRN })
	ill, asked := w.o.Server.CheckMembers(ctx, c, others)
	if asked {
		return ill
	}
	ill = map[int]error{}
	for _, lrn := range others {
		if _, lives := present[lrn]; !lives {
			ill[lrn] = errors.New("no worker is alive there")
		}
	}
	return ill
}

// moveTurn takes or gives back the turn, if that is still right. It returns errStale if
// the turn would be taken for a request that does not run any more.
func (w *worker) moveTurn(ctx context.Context, component string, r record.Request, move Move) error {
	key := keys.Turn(component)
	return retryStore(ctx, func() error {
		return w.claim.Update(ctx, func(tx *keyspace.Tx) error {
			t, terr := updater.ReadKey[record.Turn](tx.View, key)
			now, rerr := updater.LoadRequest(tx.View)
			if err := cmp.Or(terr, rerr); err != nil {
				return err
			}
			still, err := RollingSnapshot{LRN: w.o.LRN, Servers: r.Servers, Turn: t}.ConfirmMove(move, record.IsCurrent(now, r))
			if err != nil || !still {
				return err
			}
			return tx.PutOrRemove(key, record.Turn{Server: w.o.LRN, Request: r.ID}, move == MoveTake)
		})
	})
}

func (w *worker) awaitChange(ctx context.Context, revision int64, prefix string) error {
	moment, cancel := context.WithTimeout(ctx, recheckInterval)
	defer cancel()
	if err := w.o.Store.Await(moment, revision, keyspace.Below(prefix)); err != nil && moment.Err() == nil {
		return updater.AwaitRetry(ctx, err)
	}
	return ctx.Err()
}
