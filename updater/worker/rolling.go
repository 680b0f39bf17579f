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

// recheckInterval is how often a worker that waits for its turn checks the others'
// members, of which the store tells nothing.
const recheckInterval = time.Second

// unhealthyTimeout is how long a member that runs may be unhealthy before it counts as down.
const unhealthyTimeout = 30 * time.Second

// runRolling updates a component of which one member at a time may be down. It takes the turn, updates its
// member, waits until that is healthy, and gives the turn back.
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
			slog.Info("rolling",
				"component", c.Name, "move", string(move), "others", m.HealthyOthers, "well", m.Healthy, "needed", m.NeedsUpdate)
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

// readRolling reads all facts for the next move. If the component has no check of members and this server's
// member needs nothing, it does not check the others.
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
	if m.OthersChecked || m.NeedsUpdate || !m.Healthy {
		m.Unhealthy = w.checkOthers(ctx, c, r, present)
		m.HealthyOthers = len(r.Servers) - 1 - len(m.Unhealthy)
	}

	return m, revision, ctx.Err()
}

// checkOthers returns the other servers' unhealthy members. If there is no way to ask the members, a member
// counts as healthy while its server's worker lives.
func (w *worker) checkOthers(
	ctx context.Context,
	c release.Component,
	r record.Request,
	present map[int]record.Presence,
) map[int]error {
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

// moveTurn takes the turn or gives it back, if that is still right. It returns errStale if it would take
// the turn for a request that no longer runs.
func (w *worker) moveTurn(ctx context.Context, component string, r record.Request, move Move) error {
	key := keys.Turn(component)

	return retryStore(ctx, func() error {
		return w.claim.Update(ctx, func(tx *keyspace.Tx) error {
			t, err := updater.ReadKey[record.Turn](tx.View, key)
			if err != nil {
				return err
			}
			now, err := updater.LoadRequest(tx.View)
			if err != nil {
				return err
			}

			still, err := RollingSnapshot{LRN: w.o.LRN, Servers: r.Servers, Turn: t}.ConfirmMove(move,
				record.IsCurrent(now, r))
			if err != nil || !still {
				return err
			}

			return tx.PutOrRemove(key, record.Turn{Server: w.o.LRN, Request: r.ID}, move == MoveTake)
		})
	})
}

func (w *worker) awaitChange(ctx context.Context, revision int64, key string) error {
	moment, cancel := context.WithTimeout(ctx, recheckInterval)
	defer cancel()
	if err := w.o.Store.Await(moment, revision, keyspace.Exactly(key)); err != nil && moment.Err() == nil {
		return updater.AwaitRetry(ctx, err)
	}
	return ctx.Err()
}

// RollingSnapshot has what a worker knows in the step of a rolling component.
type RollingSnapshot struct {
	LRN     int
	Servers []int        // of the request
	Turn    *record.Turn // nil: nobody's
	// NeedsUpdate is set if this server's member is older than the release's, or was left
	// half-way. A server that needs nothing takes no turn and restarts nothing.
	NeedsUpdate bool
	Healthy     bool // this server's member answers
	// Running is set if this server's member does not answer, but runs, and has not been unhealthy
	// for long. The others may count on it, so that it is taken down only if they have a quorum.
	Running       bool
	HealthyOthers int           // how many of the others' members answer
	Unhealthy     map[int]error // the others' members that do not, and why
	OthersChecked bool          // the others' members were asked, and not only their workers' presences
}

// Move names what a worker does next within a step.
type Move string

// The moves in rolling steps, and in those that one server does for all.
const (
	MoveWait  Move = "wait"  // for a change, or for others to be healthy
	MoveTake  Move = "take"  // take the turn, if it is still free
	MoveGive  Move = "give"  // give the turn back
	MoveGo    Move = "go"    // update, restart, wait until healthy and for the soak time
	MoveDone  Move = "done"  // the step is done
	MoveAbort Move = "abort" // the step has failed elsewhere
)

// NextRolling decides the next move. A server keeps the turn without a lease until its member is healthy
// again, so that no two are ever down for an update. A server that dies in the middle keeps its turn, and
// goes on when it is back. The turn of a server that is not in the request does not count. No server is
// done before it sees the cluster again. For that it does not need the turn, which the others may need to
// come back.
func NextRolling(m RollingSnapshot) Move {
	held := m.Turn != nil && slices.Contains(m.Servers, m.Turn.Server)
	mine := held && m.Turn.Server == m.LRN
	needed := m.NeedsUpdate || !m.Healthy
	counted := m.Healthy || m.Running

	switch {
	case !needed && mine:
		return MoveGive
	case !needed && !m.seesCluster():
		return MoveWait
	case !needed:
		return MoveDone
	case held && !mine:
		return MoveWait
	case counted && !m.othersHaveQuorum() && mine:
		return MoveGive // whose member is down may need the turn to bring it back
	case counted && !m.othersHaveQuorum():
		return MoveWait
	case !mine:
		return MoveTake
	}

	return MoveGo
}

// ConfirmMove reports whether the move is still right for the present turn. It returns errStale for a turn
// to be taken for a request that no longer runs.
func (m RollingSnapshot) ConfirmMove(move Move, runs bool) (bool, error) {
	mine := m.Turn != nil && m.Turn.Server == m.LRN
	held := m.Turn != nil && slices.Contains(m.Servers, m.Turn.Server)
	switch {
	case move == MoveGive:
		return mine, nil
	case held:
		return false, nil
	case !runs:
		return false, errStale
	}

	return true, nil
}

func (m RollingSnapshot) othersHaveQuorum() bool { return m.HealthyOthers >= m.othersNeeded() }

// othersNeeded returns how many other members must be healthy: a majority of all, counted without this
// member. Of one or two members all others are needed.
func (m RollingSnapshot) othersNeeded() int {
	n := len(m.Servers)
	return min(n/2+1, n-1)
}

// describeWait returns why this server waits for its turn, and for which servers.
func (m RollingSnapshot) describeWait() (kind string, servers []int, why string) {
	unhealthy := slices.Sorted(maps.Keys(m.Unhealthy))
	var words []string
	for _, lrn := range unhealthy {
		words = append(words, fmt.Sprintf("server %d: %v", lrn, m.Unhealthy[lrn]))
	}
	reasons := ""
	if len(words) > 0 {
		reasons = ": " + strings.Join(words, "; ")
	}

	// This member is as it should be, and waits only until it can see enough others again.
	others := len(m.Servers) - 1
	if !m.NeedsUpdate && m.Healthy {
		return record.WaitQuorum, unhealthy, fmt.Sprintf(
			"waits to see the cluster again: %d of %d others needed, %d healthy%s",
			others/2, others, m.HealthyOthers, reasons,
		)
	}

	isHeld := m.Turn != nil && m.Turn.Server != m.LRN && slices.Contains(m.Servers, m.Turn.Server)
	if isHeld {
		return record.WaitTurn, []int{m.Turn.Server},
			fmt.Sprintf("waits for its turn, which server %d has", m.Turn.Server)
	}

	return record.WaitQuorum, unhealthy, fmt.Sprintf(
		"waits for a quorum without it: %d of %d others needed, %d healthy%s",
		m.othersNeeded(), others, m.HealthyOthers, reasons,
	)
}

// seesCluster reports whether this member and the healthy ones that it sees are at least half of
// the cluster. Others may be down, but a member that sees hardly anybody has not rejoined.
func (m RollingSnapshot) seesCluster() bool {
	return !m.OthersChecked || m.HealthyOthers >= (len(m.Servers)-1)/2
}
