package worker

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"bijou/state/keyspace"
	"bijou/updater"
	"bijou/updater/activity"
	"bijou/updater/keys"
	"bijou/updater/record"
	"bijou/updater/release"
)

// recheckInterval is how often a worker that waits for its turn checks the other members. Their health is
// not in the store, so it cannot be watched.
const recheckInterval = time.Second

// unhealthyTimeout is how long a running member can be unhealthy before it counts as down.
const unhealthyTimeout = 30 * time.Second

// runRolling updates a component of which only one member can be down at a time. It makes the moves that
// NextRolling decides on: it takes the turn, updates its member, waits until the member is healthy, and
// returns the turn.
func (w *worker) runRolling(ctx context.Context, c release.Component, r record.Request) error {
	if err := w.o.Server.Prepare(ctx, c); err != nil {
		return err
	}

	logged := MoveDone // the move that was logged last; if the first move is MoveDone, nothing is logged
	doing := activity.Begin(ctx, "rolls %s", c.Name)
	defer doing.End()
	var unhealthySince time.Time // zero while the member is healthy

	for {
		m, revision, err := w.readRolling(ctx, c, r)
		if err != nil {
			return err
		}

		switch {
		case m.Healthy:
			unhealthySince = time.Time{}
		case unhealthySince.IsZero():
			unhealthySince = time.Now()
		}

		// A member that has been unhealthy for too long counts as down, so that its update needs no quorum.
		// Since a healthy member is not Running, unhealthySince is set here.
		if m.Running && time.Since(unhealthySince) >= unhealthyTimeout {
			m.Running = false
		}

		move := NextRolling(m)
		if move != logged {
			slog.Info("rolling", "component", c.Name, "move", string(move),
				"others", m.HealthyOthers, "well", m.Healthy, "needed", m.NeedsUpdate)
			logged = move
		}

		if move == MoveWait {
			doing.Wait(m.describeWait())
		} else {
			doing.Say("rolls %s", c.Name)
		}

		if move == MoveDone {
			return nil
		}
		if err := w.makeMove(ctx, c, r, move, revision); err != nil {
			return err
		}
	}
}

// makeMove carries out a move of runRolling, except MoveDone. revision is the revision at which the turn was
// read.
func (w *worker) makeMove(
	ctx context.Context,
	c release.Component,
	r record.Request,
	move Move,
	revision int64,
) error {
	switch move {
	case MoveTake, MoveGive:
		return w.moveTurn(ctx, c.Name, r, move)
	case MoveGo:
		return w.o.Server.Update(ctx, c)
	}

	// The move is MoveWait.
	return w.awaitChange(ctx, revision, keys.Turn(c.Name))
}

// readRolling returns everything on which the next move depends, and the revision at which it read the turn.
// If the component has no check of members, and this server's member is healthy and needs no update,
// readRolling does not check the other members.
func (w *worker) readRolling(
	ctx context.Context,
	c release.Component,
	r record.Request,
) (m RollingSnapshot, revision int64, err error) {
	m = RollingSnapshot{LRN: w.o.LRN, Servers: r.Servers}
	var present map[int]record.Presence
	err = retryStore(ctx, func() error {
		return w.o.Store.View(ctx, func(v *keyspace.View) (err error) {
			if m.Turn, err = updater.ReadKey[record.Turn](v, keys.Turn(c.Name)); err != nil {
				return err
			}
			if present, err = updater.PeekServers[record.Presence](v, keys.Presences); err != nil {
				return err
			}
			revision, err = v.Revision()
			return err
		})
	})
	if err != nil {
		return m, 0, err
	}

	m.NeedsUpdate, err = w.o.Server.NeedsUpdate(ctx, c)
	if err != nil {
		return m, 0, err
	}

	m.Healthy = w.o.Server.CheckHealth(ctx, c) == nil
	m.Running = !m.Healthy && w.o.Server.IsRunning(ctx, c)
	m.OthersChecked = c.Members != nil
	// Without a check of members, the other members matter only if this server's member must be updated or
	// started.
	if m.OthersChecked || m.NeedsUpdate || !m.Healthy {
		m.Unhealthy = w.checkOthers(ctx, c, r, present)
		m.HealthyOthers = len(r.Servers) - 1 - len(m.Unhealthy)
	}

	// The checks do not return errors. If ctx has ended, their results mean nothing.
	return m, revision, ctx.Err()
}

// checkOthers returns the unhealthy members on other servers. If the component has no check of members, a
// member counts as healthy while the worker of its server is running.
func (w *worker) checkOthers(
	ctx context.Context,
	c release.Component,
	r record.Request,
	present map[int]record.Presence,
) map[int]error {
	others := slices.DeleteFunc(slices.Clone(r.Servers), func(lrn int) bool { return lrn == w.o.LRN })
	unhealthy, hasCheck := w.o.Server.CheckMembers(ctx, c, others)
	if hasCheck {
		return unhealthy
	}

	unhealthy = map[int]error{}
	for _, lrn := range others {
		if _, isAlive := present[lrn]; !isAlive {
			unhealthy[lrn] = errors.New("no worker is alive there")
		}
	}

	return unhealthy
}

// moveTurn takes or returns the turn, if ConfirmMove allows this with the turn that is then in the store.
// Otherwise it changes nothing and returns nil, and the caller decides again. It returns errStale if it would
// take the turn for a request that is no longer running.
func (w *worker) moveTurn(ctx context.Context, component string, r record.Request, move Move) error {
	key := keys.Turn(component)

	return retryStore(ctx, func() error {
		return w.claim.Update(ctx, func(tx *keyspace.Tx) error {
			t, err := updater.ReadKey[record.Turn](tx.View, key)
			if err != nil {
				return err
			}
			stored, err := updater.LoadRequest(tx.View)
			if err != nil {
				return err
			}

			m := RollingSnapshot{LRN: w.o.LRN, Servers: r.Servers, Turn: t}
			isAllowed, err := m.ConfirmMove(move, record.IsCurrent(stored, r))
			if err != nil {
				return err
			}
			if !isAllowed {
				return nil
			}

			return tx.PutOrRemove(key, record.Turn{Server: w.o.LRN, Request: r.ID}, move == MoveTake)
		})
	})
}

// awaitChange waits until the key may have changed since the revision, for at most recheckInterval. If the watch
// fails before that, it waits for updater.RetryInterval instead, so that the caller can try again. It returns an
// error if ctx is done, or if the store was deleted or closed.
func (w *worker) awaitChange(ctx context.Context, revision int64, key string) error {
	limited, cancel := context.WithTimeout(ctx, recheckInterval)
	defer cancel()
	err := w.o.Store.Await(limited, revision, keyspace.Exactly(key))
	if err != nil && limited.Err() == nil {
		return updater.AwaitRetry(ctx, err)
	}
	return ctx.Err()
}

// RollingSnapshot is the state on which a worker's next move depends, in the step of a rolling component.
type RollingSnapshot struct {
	LRN     int
	Servers []int        // the servers of the request
	Turn    *record.Turn // nil if no server has the turn
	// NeedsUpdate is set if this server's member differs from the release, or its update was interrupted. If
	// it is not set, the server takes no turn and restarts nothing.
	NeedsUpdate bool
	Healthy     bool // this server's member answers
	// Running is set if this server's member does not answer, but is running and has not been unhealthy for
	// long. The other members may depend on this member, so it is taken down only if they have a quorum.
	Running       bool
	HealthyOthers int           // the number of healthy members on other servers
	Unhealthy     map[int]error // the unhealthy members on other servers, and the reasons
	OthersChecked bool          // set if the members themselves were checked, and not only the presences of workers
}

// Move is a worker's next action within a step.
type Move string

// The moves in rolling steps, and in steps that one server runs on behalf of all.
const (
	MoveWait  Move = "wait"  // wait for a change, or for other members to become healthy
	MoveTake  Move = "take"  // take the turn, if it is still free
	MoveGive  Move = "give"  // return the turn
	MoveGo    Move = "go"    // run the update, which waits until the component has stayed healthy for its soak time
	MoveDone  Move = "done"  // end the step, which has succeeded
	MoveAbort Move = "abort" // end the step, which has failed on another server
)

// NextRolling decides on the next move. While its member is down, a server keeps the turn, without a lease.
// So two members are never down for an update at the same time. The server returns the turn once its member
// is healthy and up to date, or must stay up since the others have no quorum. A server that dies during its
// turn keeps the turn, and continues when it is back. The turn of a server that is not in the request is
// ignored.
//
// A server's step is done only when its member sees the cluster again. The server returns the turn before that
// wait, since other servers may need the turn to bring their members back.
func NextRolling(m RollingSnapshot) Move {
	isHeld := m.isTurnHeld()
	isOwnTurn := isHeld && m.Turn.Server == m.LRN
	// A member needs the turn until it is up to date and healthy.
	needsTurn := m.NeedsUpdate || !m.Healthy
	isUp := m.Healthy || m.Running
	// A member that is up must stay up while the others have no quorum.
	mustStayUp := isUp && !m.othersHaveQuorum()

	switch {
	case !needsTurn && isOwnTurn:
		return MoveGive
	case !needsTurn && !m.seesCluster():
		return MoveWait
	case !needsTurn:
		return MoveDone
	case isHeld && !isOwnTurn:
		return MoveWait
	case mustStayUp && isOwnTurn:
		// Another server, whose member is down, may need the turn to bring its member back.
		return MoveGive
	case mustStayUp:
		return MoveWait
	case !isOwnTurn:
		return MoveTake
	}

	return MoveGo
}

// isTurnHeld reports whether a server of the request has the turn.
func (m RollingSnapshot) isTurnHeld() bool {
	return m.Turn != nil && slices.Contains(m.Servers, m.Turn.Server)
}

// ConfirmMove reports whether a server can still make the move, MoveTake or MoveGive, given the current turn.
// isRunning says whether the request is still running. ConfirmMove returns errStale if the move would take the
// turn for a request that is no longer running.
func (m RollingSnapshot) ConfirmMove(move Move, isRunning bool) (isAllowed bool, err error) {
	isOwnTurn := m.Turn != nil && m.Turn.Server == m.LRN
	switch {
	case move == MoveGive:
		return isOwnTurn, nil
	case m.isTurnHeld():
		return false, nil
	case !isRunning:
		return false, errStale
	}

	return true, nil
}

// othersHaveQuorum reports whether the other members can do without this member.
func (m RollingSnapshot) othersHaveQuorum() bool { return m.HealthyOthers >= m.othersNeeded() }

// othersNeeded returns how many other members must be healthy: a majority of all members, without counting
// this one. If there are only one or two members, all others must be healthy.
func (m RollingSnapshot) othersNeeded() int {
	n := len(m.Servers)
	return min(n/2+1, n-1)
}

// describeWait returns why this server waits, and for which servers. kind is [record.WaitQuorum] or
// [record.WaitTurn].
func (m RollingSnapshot) describeWait() (kind string, servers []int, why string) {
	unhealthy := slices.Sorted(maps.Keys(m.Unhealthy))
	var problems []string
	for _, lrn := range unhealthy {
		problems = append(problems, fmt.Sprintf("server %d: %v", lrn, m.Unhealthy[lrn]))
	}
	reasons := ""
	if len(problems) > 0 {
		reasons = ": " + strings.Join(problems, "; ")
	}

	// A member that is up to date and healthy only waits for seesCluster, which needs half of the others.
	others := len(m.Servers) - 1
	if !m.NeedsUpdate && m.Healthy {
		return record.WaitQuorum, unhealthy, fmt.Sprintf(
			"waits until it sees enough healthy members again: %d of %d others needed, %d healthy%s",
			others/2, others, m.HealthyOthers, reasons,
		)
	}

	if m.isTurnHeld() && m.Turn.Server != m.LRN {
		return record.WaitTurn, []int{m.Turn.Server},
			fmt.Sprintf("waits for its turn; it is the turn of server %d", m.Turn.Server)
	}

	return record.WaitQuorum, unhealthy, fmt.Sprintf(
		"waits until enough other members are healthy: %d of %d others needed, %d healthy%s",
		m.othersNeeded(), others, m.HealthyOthers, reasons,
	)
}

// seesCluster reports whether this member and the healthy members that it sees are at least half of the
// cluster. A few members may be down, but a member that sees hardly any other member has not rejoined the
// cluster.
func (m RollingSnapshot) seesCluster() bool {
	return !m.OthersChecked || m.HealthyOthers >= (len(m.Servers)-1)/2
}
