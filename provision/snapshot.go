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

// snapshot is the part of the state on which one plan is based.
type snapshot struct {
	revision    int64
	environment state.Environment
	next        int // the number of the next machine
	machines    []state.Machine
	unreadable  []string       // machines whose records cannot be decoded; their instances are left alone
	units       map[string]int // the number of units of each machine that is not alive
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

// listUnreadable returns the IDs of the machines that are not among the given ones, since their records could
// not be decoded.
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

// countUnits counts the units of machines that are not alive. A plan does not need other counts.
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

// newWant returns the machines and settings for a plan.
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

// nextRetry returns the time of the next retry of a failed start. It returns zero if no start is retried.
func (s snapshot) nextRetry(now time.Time) (first time.Time) {
	for _, m := range s.machines {
		if m.RetryAt.After(now) && (first.IsZero() || m.RetryAt.Before(first)) {
			first = m.RetryAt
		}
	}
	return first
}

// instanceOwners maps instances to the machines that have recorded or reserved them. Its methods are safe
// for concurrent use.
type instanceOwners struct {
	mu       sync.Mutex
	machines map[string]string // by instance
}

// setRecorded replaces the owners of instances with the recorded ones. A machine without a recorded instance
// keeps its reservation. Instances of dead machines are dropped, since they may already belong to other
// machines.
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

// reserve reserves an instance for a machine. If the instance already belongs to a different machine, it
// returns that machine and false.
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

// listFailure is the provider's last failure to list its instances, and the time of the next attempt.
type listFailure struct {
	retryBackoff
	err error
}

// listInstances lists the provider's instances. After an error, it returns the same error until the next
// attempt is due. The delay grows with each failure.
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
	// agentGrace is how long an absent agent has to come back, for example after a restart, before the
	// provider is queried about its instance.
	agentGrace = time.Second
	// absentShare limits the time for queries of the provider because of absent agents, since a query of many
	// hosts takes long. They use at most one part in absentShare of the time.
	absentShare = 5
)

// absentAgents holds the machines whose agents have disappeared, so that the provider is soon queried about
// their instances. The interval between these queries grows, since an instance may stop later than its agent.
// Once the interval reaches planInterval, the usual plans are enough. Only one goroutine may use
// absentAgents.
type absentAgents map[string]absence

// absence contains the time since which an agent has been absent, and the time of the next query.
type absence struct{ since, due time.Time }

func (a absentAgents) noteGone(machine string, now time.Time) {
	a[machine] = absence{now, now.Add(agentGrace)}
}

// noteAsked records that the provider was queried at the time at, with or without success. For each agent whose
// query was due, it sets the time of the next query.
func (a absentAgents) noteAsked(at time.Time) {
	for machine, gone := range a {
		if at.Before(gone.due) {
			continue
		}

		// The next query comes after as much time again as the agent has been absent.
		delay := at.Sub(gone.since)
		if delay >= planInterval {
			// The usual plans query the provider as often as that.
			delete(a, machine)
			continue
		}
		a[machine] = absence{gone.since, at.Add(delay)}
	}
}

// untilDue returns the time until the next question about an absent agent. It returns limit if that is earlier.
func (a absentAgents) untilDue(now time.Time, limit time.Duration) time.Duration {
	for _, gone := range a {
		limit = min(limit, gone.due.Sub(now))
	}
	return limit
}

// untilAbsentDue is untilDue of the absent agents, delayed so that the questions take only their share of the
// time.
func (l *leader) untilAbsentDue(now time.Time, limit time.Duration) time.Duration {
	rest := l.last.at.Add(absentShare * l.planDuration).Sub(now)
	return min(max(l.absentAgents.untilDue(now, limit), rest), limit)
}

// noteAgents records which agents have appeared or disappeared. It ignores agents of machines that are not
// started. It returns true if other records have changed since the last plan.
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
			// The agent was alive at least until SessionTTL ago, so its start was effective until then.
			l.backoffs.forgetIfHelped(Action{Verb: Start, Machine: machine}, now.Add(-state.SessionTTL))
		}
	}

	return records
}
