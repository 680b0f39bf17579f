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

// absences is which machines' agents have gone, so that the provider is asked soon
// what became of their instances. It is asked later and later, since an instance
// may end after its agent's presence; in the end the interval is often enough. It
// is for one goroutine.
type absences map[string]absence

// absence is since when an agent is gone, and when the provider is asked next.
type absence struct{ since, due time.Time }

// noteGone notes that the machine's agent is gone.
func (a absences) noteGone(machine string, now time.Time) {
	a[machine] = absence{now, now.Add(agentGrace)}
}

// noteBack notes that it is there.
func (a absences) noteBack(machine string) { delete(a, machine) }

// noteAsked notes that the provider was asked at that time, or would not have answered.
func (a absences) noteAsked(at time.Time) {
	for machine, gone := range a {
		if at.Before(gone.due) {
			continue
		}
		again := at.Sub(gone.since)
		if again >= interval {
			delete(a, machine)
			continue
		}
		a[machine] = absence{gone.since, at.Add(again)}
	}
}

// untilDue is how long it is until the provider is to be asked; limit at most.
func (a absences) untilDue(now time.Time, limit time.Duration) time.Duration {
	for _, gone := range a {
		limit = min(limit, gone.due.Sub(now))
	}
	return limit
}

// untilAbsentDue is how long it is until the provider is to be asked for the sake of
// agents that are gone; limit at most.
func (l *lead) untilAbsentDue(now time.Time, limit time.Duration) time.Duration {
	rest := l.last.at.Add(absentShare * l.labour).Sub(now)
	return min(max(l.absent.untilDue(now, limit), rest), limit)
}

// noteAgents takes up which agents came and went, and reports whether records have
// changed that the last plan did not know. Agents that no start would bring back
// are passed over.
func (l *lead) noteAgents(changes []state.KeyChange) (records bool) {
	now := l.Now()
	for _, c := range changes {
		machine, agent := state.AgentOf(c.Key)
		switch {
		case !agent:
			records = records || c.Revision > l.last.revision
		case !c.Deleted:
			l.absent.noteBack(machine)
		case l.last.want.starts(machine):
			l.absent.noteGone(machine, now)
			// The session was not lost before: until then its start has helped.
			l.holds.noteHelp(Action{Verb: Start, Machine: machine}, now.Add(-state.SessionTTL))
		}
	}
	return records
}
