package updater

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"bijou/state"
	"bijou/updater/activity"
	"bijou/updater/record"
	"bijou/updater/release"
)

// recheck is how often a worker that waits for its turn looks how the others'
// members are, which nothing tells it.
const recheck = time.Second

// illness is how long a member that runs may be ill all the time, before it is taken
// for one that is down.
const illness = 30 * time.Second

// roll updates this server's member of a rolling component when it is its turn.
func (w *worker) roll(ctx context.Context, c release.Component, r record.Request) error {
	if err := w.o.Server.Prepare(ctx, c); err != nil {
		return err
	}
	said := MoveDone
	doing := activity.Begin(ctx, "rolls %s", c.Name)
	defer doing.End()
	var ill time.Time // since when
	for {
		m, revision, err := w.member(ctx, c, r)
		if err != nil {
			return err
		}
		if m.Well {
			ill = time.Time{}
		} else if ill.IsZero() {
			ill = time.Now()
		}
		m.Up = m.Up && time.Since(ill) < illness
		move := NextRolling(m)
		if move != said {
			slog.Info("rolling", "component", c.Name, "move", string(move), "others", m.Others, "well", m.Well, "needed", m.Needed)
			said = move
		}
		if move == MoveWait {
			doing.Wait(m.waits())
		} else {
			doing.Say("rolls %s", c.Name)
		}
		switch move {
		case MoveDone:
			return nil
		case MoveTake, MoveGive:
			err = w.turn(ctx, c.Name, r, move)
		case MoveGo:
			err = w.o.Server.Update(ctx, c)
		default:
			err = w.pause(ctx, revision, Keys().Turn(c.Name))
		}
		if err != nil {
			return err
		}
	}
}

// member is what the worker knows of a rolling component. Where the others' members
// cannot be asked for, how they are does not matter to one that needs nothing.
func (w *worker) member(ctx context.Context, c release.Component, r record.Request) (m Member, revision int64, err error) {
	m = Member{LRN: w.o.LRN, Servers: r.Servers}
	var present map[int]record.Presence
	err = persist(ctx, func() error {
		return w.o.Store.View(ctx, func(v *state.KeyView) (err error) {
			m.Turn, err = LoadTurn(v, c.Name)
			if err == nil {
				present, err = LoadPresences(v)
			}
			if err == nil {
				revision, err = v.Revision()
			}
			return err
		})
	})
	if err == nil {
		m.Needed, err = w.o.Server.Needed(ctx, c)
	}
	if err != nil {
		return m, 0, err
	}
	m.Well = w.o.Server.Well(ctx, c) == nil
	m.Up = !m.Well && w.o.Server.Runs(ctx, c)
	if m.Asked = c.Members != nil; m.Asked || m.Needed || !m.Well {
		m.Ill = w.others(ctx, c, r, present)
		m.Others = len(r.Servers) - 1 - len(m.Ill)
	}
	return m, revision, ctx.Err()
}

// others is what is the matter with the other servers' members: where there is no way to
// ask them, whose worker lives is well.
func (w *worker) others(ctx context.Context, c release.Component, r record.Request, present map[int]record.Presence) map[int]error {
	others := slices.DeleteFunc(slices.Clone(r.Servers), func(lrn int) bool { return lrn == w.o.LRN })
	ill, asked := w.o.Server.Others(ctx, c, others)
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

// turn takes or gives back the turn, if it is still as it was. Taking is for the
// request that runs only: errStale.
func (w *worker) turn(ctx context.Context, component string, r record.Request, move Move) error {
	key := Keys().Turn(component)
	return persist(ctx, func() error {
		return w.claim.Update(ctx, func(tx *state.KeyTx) error {
			t, err := LoadTurn(tx.KeyView, component)
			if err != nil {
				return err
			}
			now, err := LoadRequest(tx.KeyView)
			if err != nil {
				return err
			}
			still, err := Member{LRN: w.o.LRN, Servers: r.Servers, Turn: t}.still(move, runs(now, r))
			switch {
			case err != nil || !still:
				return err
			case move == MoveTake:
				return tx.Put(key, record.Turn{Server: w.o.LRN, Request: r.ID})
			}
			tx.Remove(key)
			return nil
		})
	})
}

// pause waits for a change below the prefix, and for a moment at most.
func (w *worker) pause(ctx context.Context, revision int64, prefix string) error {
	moment, cancel := context.WithTimeout(ctx, recheck)
	defer cancel()
	if err := w.o.Store.Await(moment, revision, prefix); err != nil && moment.Err() == nil {
		return bear(ctx, err)
	}
	return ctx.Err()
}
