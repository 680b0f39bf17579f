package updater

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"bijou/updater/record"
)

// RollingSnapshot is what a worker knows in the step of a rolling component.
type RollingSnapshot struct {
	LRN     int
	Servers []int        // of the request
	Turn    *record.Turn // nil: nobody's
	// NeedsUpdate: this server's member is older than the release's, or was left
	// half-way. Whoever needs nothing takes no turn and restarts nothing.
	NeedsUpdate bool
	Healthy     bool // this server's member answers
	// Running: it does not answer, but runs, and has not been ill for long. The others may
	// count on it, so that it is not taken down without asking them.
	Running       bool
	HealthyOthers int // how many of the others' members answer
	// Unhealthy is what is the matter with those that do not.
	Unhealthy     map[int]error
	OthersChecked bool // Others is what this server's own look at the cluster has found
}

// Move is what a worker does next in such a step.
type Move string

// The moves in rolling steps, and in those that one server does for all.
const (
	MoveWait  Move = "wait"  // for a change, or for others to be well
	MoveTake  Move = "take"  // take the turn, if it is still free
	MoveGive  Move = "give"  // give the turn back
	MoveGo    Move = "go"    // update, restart, wait until well and for the soak time
	MoveDone  Move = "done"  // the step is done
	MoveAbort Move = "abort" // the step has failed elsewhere
)

// NextRolling decides the next move. The turn is kept without a lease until the
// member is well again, so that no two are ever down for an update: a server
// that dies half-way keeps its turn, and goes on when it is back. The turn of a
// server that is no part of the request is nobody's. Nobody is done before it sees
// the cluster again, without the turn, since the others may need that to come back.
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

// confirmMove tells if the turn, as it is by now, is still to be taken or given back. It
// is taken for a request that runs only: errStale.
func (m RollingSnapshot) confirmMove(move Move, runs bool) (bool, error) {
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

// othersHaveQuorum tells if the others do without this member: they are a quorum. Where no
// quorum can do without one, of one or two, all others must be well.
func (m RollingSnapshot) othersHaveQuorum() bool {
	return m.HealthyOthers >= m.othersNeeded()
}

// othersNeeded is how many of the others must be well.
func (m RollingSnapshot) othersNeeded() int {
	n := len(m.Servers)
	return min(n/2+1, n-1)
}

// describeWait says for what, and for whom, NextRolling has it wait.
func (m RollingSnapshot) describeWait() (kind string, servers []int, why string) {
	ill := slices.Sorted(maps.Keys(m.Unhealthy))
	var words []string
	for _, lrn := range ill {
		words = append(words, fmt.Sprintf("server %d: %v", lrn, m.Unhealthy[lrn]))
	}
	who := withPrefix(": ", strings.Join(words, "; "))
	held := m.Turn != nil && m.Turn.Server != m.LRN && slices.Contains(m.Servers, m.Turn.Server)
	switch needed := m.NeedsUpdate || !m.Healthy; {
	case !needed:
		return record.WaitQuorum, ill, fmt.Sprintf("waits to see the cluster again: %d of %d others needed, %d healthy%s", (len(m.Servers)-1)/2, len(m.Servers)-1, m.HealthyOthers, who)
	case held:
		return record.WaitTurn, []int{m.Turn.Server}, fmt.Sprintf("waits for its turn, which server %d has", m.Turn.Server)
	}
	return record.WaitQuorum, ill, fmt.Sprintf("waits for a quorum without it: %d of %d others needed, %d healthy%s", m.othersNeeded(), len(m.Servers)-1, m.HealthyOthers, who)
}

// withPrefix puts a text behind something, if there is one.
func withPrefix(what, text string) string {
	if text == "" {
		return ""
	}
	return what + text
}

// seesCluster tells if this member and those that it sees are at least half of the
// cluster. Others may be down, but one that sees hardly anybody is not back in it.
func (m RollingSnapshot) seesCluster() bool {
	return !m.OthersChecked || m.HealthyOthers >= (len(m.Servers)-1)/2
}
