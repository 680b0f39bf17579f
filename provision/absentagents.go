package provision

import (
	"time"

	"bijou/state"
)

const (
	// agentGrace is how long an agent that is gone may take to come back by itself,
	// as one does that is restarted in order.
	agentGrace = time.Second
	// absentShare: of the time, a part of so many at most is spent on asking for the
	// sake of agents that are gone. Many hosts take long to ask.
	absentShare = 5
)

// absentAgents holds the machines whose agents have gone, so that the provider is asked soon what
// became of their instances. It is asked later and later, since an instance may end after its
// agent's presence; in the end planInterval is often enough. It is for one goroutine.
type absentAgents map[string]absence

// absence holds since when an agent is gone, and when the provider is asked next.
type absence struct{ since, due time.Time }

func (a absentAgents) noteGone(machine string, now time.Time) {
	a[machine] = absence{now, now.Add(agentGrace)}
}

func (a absentAgents) noteBack(machine string) { delete(a, machine) }

// Asking counts also if the provider would not have answered.
func (a absentAgents) noteAsked(at time.Time) {
	for machine, gone := range a {
		if at.Before(gone.due) {
			continue
		}
		again := at.Sub(gone.since)
		if again >= planInterval {
			delete(a, machine)
			continue
		}
		a[machine] = absence{gone.since, at.Add(again)}
	}
}

func (a absentAgents) untilDue(now time.Time, limit time.Duration) time.Duration {
	for _, gone := range a {
		limit = min(limit, gone.due.Sub(now))
	}
	return limit
}

func (l *leader) untilAbsentDue(now time.Time, limit time.Duration) time.Duration {
	rest := l.last.at.Add(absentShare * l.planDuration).Sub(now)
	return min(max(l.absentAgents.untilDue(now, limit), rest), limit)
}

// noteAgents reports whether records have changed that the last plan did not know. Agents that no
// start would bring back are passed over.
func (l *leader) noteAgents(changes []state.KeyChange) (records bool) {
	now := l.Now()
	for _, c := range changes {
		machine, agent := state.AgentOf(c.Key)
		switch {
		case !agent:
			records = records || c.Revision > l.last.revision
		case !c.Deleted:
			l.absentAgents.noteBack(machine)
		case l.last.want.startsInstance(machine):
			l.absentAgents.noteGone(machine, now)
			// The session was not lost before: until then its start has helped.
			l.backoffs.forgetIfHelped(Action{Verb: Start, Machine: machine}, now.Add(-state.SessionTTL))
		}
	}
	return records
}
