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

// listUnreadable returns the IDs of the machines whose records could not be decoded. These are all machines in
// the state except those in read.
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

// countUnits returns the number of units of each machine that is dying or dead, by machine ID. A plan does not
// need the numbers of living machines.
func countUnits(v *state.View, machines []state.Machine) (map[string]int, error) {
	units := map[string]int{}
	for _, m := range machines {
		if m.Life == state.Alive {
			continue
		}
		assigned, err := v.MachineUnits(m.ID)
		if err != nil {
			return nil, err
		}
		units[m.ID] = len(assigned)
	}

	return units, nil
}

// newWant returns the machines and settings for a plan that is made at the time now. A machine whose record
// cannot be decoded counts as alive and unmanaged, so that the plan leaves its instance alone.
func (s snapshot) newWant(now time.Time) Want {
	w := Want{Environment: s.environment.UUID, Harvest: s.environment.Harvest(), Next: s.next}
	for _, m := range s.machines {
		w.Machines = append(w.Machines, Wanted{
			ID:       m.ID,
			Life:     m.Life,
			Instance: m.InstanceID,
			Units:    s.units[m.ID],
			// The environment was bootstrapped on machine 0, so the provider has not started it.
			Unmanaged: m.ID == "0",
			Private:   m.Addresses.Private,
			Public:    m.Addresses.Public,
			// A failed start without RetryAt waits for the operator.
			AwaitsRetry: m.Status == state.MachineError && (m.RetryAt.IsZero() || now.Before(m.RetryAt)),
		})
	}

	for _, id := range s.unreadable {
		w.Machines = append(w.Machines, Wanted{ID: id, Life: state.Alive, Unmanaged: true})
	}
	return w
}

// nextRetry returns the time of the first retry of a failed start after now. It returns zero if no retry is
// due after now.
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

// setRecorded makes each machine the owner of its recorded instance. A machine without a recorded instance
// keeps an instance that it already owns, for example by a reservation. All other owners are forgotten, and so
// are dead machines, since their instances may already belong to other machines.
func (o *instanceOwners) setRecorded(recorded []Wanted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ownedBefore := map[string]string{} // by machine
	for instance, machine := range o.machines {
		ownedBefore[machine] = instance
	}

	o.machines = map[string]string{}
	for _, m := range recorded {
		instance := m.Instance
		if instance == "" {
			instance = ownedBefore[m.ID]
		}
		if instance != "" && m.Life != state.Dead {
			o.machines[instance] = m.ID
		}
	}
}

// reserve reserves an instance for a machine. If the instance already belongs to a different machine, it
// returns that machine and false.
func (o *instanceOwners) reserve(instance, machine string) (other string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if owner, taken := o.machines[instance]; taken && owner != machine {
		return owner, false
	}

	o.machines[instance] = machine
	return "", true
}

// isTaken reports whether any machine owns the instance.
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

// listInstances lists the provider's instances. After a failure, it returns the same error without a query
// until the next attempt is due. The delay grows with each failure, up to planInterval.
func (l *leader) listInstances(ctx context.Context) ([]provider.Instance, error) {
	if l.Now().Before(l.listFailure.due) {
		return nil, l.listFailure.err
	}

	listCtx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()

	have, err := l.Provider.Instances(listCtx)
	if err == nil {
		l.listFailure = listFailure{}
		return have, nil
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if listCtx.Err() != nil {
		err = fmt.Errorf("the provider has not answered for %s", listTimeout)
	}

	failures := l.listFailure.attempts
	nextAttempt := l.Now().Add(min(retryDelay(failures), planInterval))
	l.listFailure = listFailure{
		retryBackoff{failures + 1, nextAttempt},
		fmt.Errorf("cannot list instances, so none are started or stopped: %w", err),
	}

	return nil, l.listFailure.err
}

const (
	// agentGrace is how long an absent agent has to come back, for example after a restart, before the
	// provider is queried about its instance.
	agentGrace = time.Second
	// absentShare limits the plans that are made because of absent agents, since a query of many hosts takes
	// long. These plans take at most one part in absentShare of the time.
	absentShare = 5
)

// absentAgents holds the machines whose agents have disappeared, so that the provider is soon queried about
// their instances. The interval between these queries grows, since an instance may stop later than its agent.
// Once the interval reaches planInterval, the usual plans are enough. Only one goroutine may use
// absentAgents.
type absentAgents map[string]absence

// absence contains the time since which an agent has been absent, and the time at which the next query of the
// provider is due.
type absence struct{ since, due time.Time }

// noteGone records that the machine's agent has disappeared. The first query is due after agentGrace.
func (a absentAgents) noteGone(machine string, now time.Time) {
	a[machine] = absence{now, now.Add(agentGrace)}
}

// noteQuery schedules the next queries of the provider after one at the time queried, with or without success.
// It does so for each absent agent whose query was due. It forgets such an agent once its absence has reached
// planInterval.
func (a absentAgents) noteQuery(queried time.Time) {
	for machine, agent := range a {
		if queried.Before(agent.due) {
			continue
		}

		// The delay is as long as the absence until now, so it doubles with each query.
		delay := queried.Sub(agent.since)
		if delay >= planInterval {
			// From now on, the plan that is made every planInterval is enough.
			delete(a, machine)
			continue
		}
		a[machine] = absence{agent.since, queried.Add(delay)}
	}
}

// untilDue returns the time until the first query about an absent agent is due, but at most limit.
func (a absentAgents) untilDue(now time.Time, limit time.Duration) time.Duration {
	for _, agent := range a {
		limit = min(limit, agent.due.Sub(now))
	}
	return limit
}

// untilAbsentDue returns the time until a plan must query the provider about an absent agent, but at most
// limit. It delays such a plan if plans would otherwise take more than their share of the time, which
// absentShare defines.
func (l *leader) untilAbsentDue(now time.Time, limit time.Duration) time.Duration {
	earliestPlan := l.last.at.Add(absentShare * l.planDuration)
	wait := max(l.absentAgents.untilDue(now, limit), earliestPlan.Sub(now))
	return min(wait, limit)
}

// noteAgents records which agents have appeared or disappeared, and ignores the disappearance of agents whose
// machines need no instance. The disappearance of an agent that has outlasted the backoff of its machine's
// start ends that backoff. noteAgents returns true if a record that is not an agent's has changed since the
// last plan.
func (l *leader) noteAgents(changes []state.KeyChange) (recordsChanged bool) {
	now := l.Now()
	for _, c := range changes {
		machine, isAgent := state.AgentOf(c.Key)
		switch {
		case !isAgent:
			// The watch begins before the provider's query, so the plan may already include this change.
			recordsChanged = recordsChanged || c.Revision > l.last.revision
		case !c.Deleted:
			delete(l.absentAgents, machine)
		case l.last.want.startsInstance(machine):
			l.absentAgents.noteGone(machine, now)
			// The agent was alive at least until SessionTTL ago, so its start was effective until then.
			l.backoffs.forgetIfHelped(Action{Verb: Start, Machine: machine}, now.Add(-state.SessionTTL))
		}
	}

	return recordsChanged
}
