package provision

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"bijou/provision/provider"
	"bijou/state"
)

// snapshot holds what is read of the state for one plan.
type snapshot struct {
	revision    int64
	environment state.Environment
	next        int // the number of the next machine
	machines    []state.Machine
	unreadable  []string       // machines whose records do not decode: their instances are left alone
	units       map[string]int // by machine that is not alive
	trouble     state.ProvisionerTrouble
}

// readSnapshot reads everything that a plan needs, at one revision.
func readSnapshot(ctx context.Context, st *state.State) (s snapshot, err error) {
	err = st.View(ctx, func(v *state.View) (err error) {
		if s.revision, err = v.Revision(); err != nil {
			return err
		}
		if s.environment, err = v.Environment(); err != nil {
			return err
		}
		if s.next, err = v.NextMachine(); err != nil {
			return err
		}
		if s.trouble, err = v.ProvisionerTrouble(); err != nil {
			return err
		}
		if s.machines, err = v.Machines(); err != nil {
			return err
		}

		if s.unreadable, err = listUnreadable(v, s.machines); err != nil {
			return err
		}

		s.units, err = countUnits(v, s.machines)
		return err
	})

	return s, err
}

// listUnreadable lists the machines that are not among those that were read.
func listUnreadable(v *state.View, read []state.Machine) (ids []string, err error) {
	ids, err = v.MachineIDs()
	if err != nil {
		return nil, err
	}

	known := make(map[string]bool, len(read))
	for _, m := range read {
		known[m.ID] = true
	}
	return slices.DeleteFunc(ids, func(id string) bool { return known[id] }), nil
}

// countUnits counts the units of machines that are not alive; the plan needs no others.
func countUnits(v *state.View, machines []state.Machine) (map[string]int, error) {
	units := map[string]int{}
	for _, m := range machines {
		if m.Life == state.Alive {
			continue
		}
		of, err := v.MachineUnits(m.ID)
		if err != nil {
			return nil, err
		}
		units[m.ID] = len(of)
	}

	return units, nil
}

// newWant returns the machines that the plan must bring about.
func (s snapshot) newWant(now time.Time) Want {
	w := Want{Environment: s.environment.UUID, Harvest: s.environment.Harvest(), Next: s.next}
	for _, m := range s.machines {
		w.Machines = append(w.Machines, Wanted{
			ID:          m.ID,
			Life:        m.Life,
			Instance:    m.InstanceID,
			Units:       s.units[m.ID],
			Unmanaged:   m.ID == "0",
			Private:     m.Addresses.Private,
			Public:      m.Addresses.Public,
			AwaitsRetry: m.Status == state.MachineError && (m.RetryAt.IsZero() || now.Before(m.RetryAt)),
		})
	}

	for _, id := range s.unreadable {
		w.Machines = append(w.Machines, Wanted{ID: id, Life: state.Alive, Unmanaged: true})
	}
	return w
}

// nextRetry returns the time of the next retry of a failed start; zero if there is none.
func (s snapshot) nextRetry(now time.Time) (first time.Time) {
	for _, m := range s.machines {
		if m.RetryAt.After(now) && (first.IsZero() || m.RetryAt.Before(first)) {
			first = m.RetryAt
		}
	}
	return first
}

// instanceOwners says which machine has which instance, as recorded or about to be. Its methods may
// be called from several goroutines.
type instanceOwners struct {
	mu       sync.Mutex
	machines map[string]string // by instance
}

// setRecorded replaces the owners of instances by those that are recorded. A machine without a recorded
// instance keeps its reservation. Instances of dead machines are not kept, since they can already belong to
// other machines.
func (o *instanceOwners) setRecorded(recorded []Wanted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	reserved := map[string]string{}
	for instance, machine := range o.machines {
		reserved[machine] = instance
	}

	o.machines = map[string]string{}
	for _, m := range recorded {
		if m.Instance == "" {
			m.Instance = reserved[m.ID]
		}
		if m.Instance != "" && m.Life != state.Dead {
			o.machines[m.Instance] = m.ID
		}
	}
}

// reserve reserves an instance for a machine. ok is false if the instance is that of the machine other.
func (o *instanceOwners) reserve(instance, machine string) (other string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, taken := o.machines[instance]; taken && other != machine {
		return other, false
	}

	o.machines[instance] = machine
	return "", true
}

func (o *instanceOwners) isTaken(instance string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, taken := o.machines[instance]
	return taken
}

// listFailure says for how long the provider has not listed its instances, and why.
type listFailure struct {
	retryBackoff
	err error
}

// listInstances lists the provider's instances. After an error it returns that error without a call until
// the next attempt is due, and waits longer after each failure.
func (l *leader) listInstances(ctx context.Context) ([]provider.Instance, error) {
	if l.Now().Before(l.listFailure.due) {
		return nil, l.listFailure.err
	}

	asked, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()

	have, err := l.Provider.Instances(asked)
	switch {
	case err == nil:
		l.listFailure = listFailure{}
		return have, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case asked.Err() != nil:
		err = fmt.Errorf("the provider has not answered for %s", listTimeout)
	}

	n := l.listFailure.attempts
	l.listFailure = listFailure{
		retryBackoff{n + 1, l.Now().Add(min(retryDelay(n), planInterval))},
		fmt.Errorf("cannot list instances, so none are started or stopped: %w", err),
	}

	return nil, l.listFailure.err
}

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

// noteAsked notes that the provider was asked, also without an answer, and delays the next question.
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

// noteAgents notes agents that came or went, except those that no start would bring back. It reports
// whether other records have changed since the last plan.
func (l *leader) noteAgents(changes []state.KeyChange) (records bool) {
	now := l.Now()
	for _, c := range changes {
		machine, agent := state.AgentOf(c.Key)
		switch {
		case !agent:
			records = records || c.Revision > l.last.revision
		case !c.Deleted:
			delete(l.absentAgents, machine)
		case l.last.want.startsInstance(machine):
			l.absentAgents.noteGone(machine, now)
			// The session was not lost before: until then its start has helped.
			l.backoffs.forgetIfHelped(Action{Verb: Start, Machine: machine}, now.Add(-state.SessionTTL))
		}
	}

	return records
}
