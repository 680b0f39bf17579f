package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state"
)

// Want describes the instances that the state requires at one moment.
type Want struct {
	Environment string        // the UUID; instances of other environments are never touched
	Harvest     state.Harvest // which instances are stopped
	// Next is the number of the next machine. A machine with a lower number that is not in Machines was
	// removed.
	Next     int
	Machines []Wanted
}

// Wanted contains the facts about one machine that Plan needs.
type Wanted struct {
	ID       string
	Life     state.Life
	Instance string // the recorded instance, or "" if none was started
	// Private and Public are the recorded addresses.
	Private, Public string
	// Units is the number of assigned units. It is set only for machines that are not alive.
	Units int
	// Unmanaged is set if the machine was not started by the provider, such as machine 0, on which the
	// environment was bootstrapped. Its instance is never started or stopped.
	Unmanaged bool
	// AwaitsRetry is set if a start has failed, and must not be retried yet or must not be retried
	// automatically.
	AwaitsRetry bool
}

// Verb is the kind of an Action.
type Verb string

// The verbs of Plan.
const (
	Start  Verb = "start"  // start an instance for the machine, and record it
	Record Verb = "record" // record a different instance, or different addresses
	Stop   Verb = "stop"   // stop an instance that no machine needs
	Remove Verb = "remove" // remove the machine from the state; an Instance is left alone
)

// Action is one action of the provisioner. Actions on different machines are independent of each other. All
// actions are idempotent.
type Action struct {
	Verb            Verb
	Machine         string // "" for an instance that names no machine
	Instance        string // not set for Start
	Private, Public string // only for Record: the instance's addresses, as far as they are known
}

// Plan compares the machines in the state with the provider's instances. The instances must have been listed
// before the machines were read. Otherwise the instance of a machine that was added in between would count as
// unknown. Plan returns the actions to carry out, and the problems with the provider's list. It does no I/O.
//
// Plan works for any list of instances. If the list contradicts the state, Plan follows the state: a recorded
// instance belongs to the machine that has recorded it, and is stopped only if that machine is dead. Plan
// does not change an instance without an ID, or one that it cannot distinguish from another.
func Plan(want Want, have []provider.Instance) (actions []Action, problems []string) {
	assigned := assignInstances(want, have)
	for _, w := range want.Machines {
		actions = append(actions, assigned.planMachine(w)...)
	}
	// The machines below are not in the state. With "", each Stop names the machine that its instance names.
	if want.Harvest.StopsGone() {
		actions = append(actions, stopActions("", assigned.gone)...)
	}

	if want.Harvest.StopsUnknown() {
		actions = append(actions, stopActions("", assigned.unknown)...)
	} else {
		for _, i := range assigned.unknown {
			assigned.problemf(
				"instance %q claims to belong to machine %q, which has never existed in this model; bijou leaves the instance alone",
				i.ID,
				i.Machine,
			)
		}
	}

	slices.SortStableFunc(actions, func(a, b Action) int {
		return cmp.Or(strings.Compare(a.Machine, b.Machine), strings.Compare(a.Instance, b.Instance))
	})
	slices.Sort(assigned.problems)
	return actions, slices.Compact(assigned.problems)
}

// planMachine returns the actions for one machine in the state. A machine that is unmanaged or as wanted needs
// none. A machine that is dead, or dying without ever having started, is taken down. For any other machine,
// chooseInstance chooses the instance to keep. If that instance is running, the machine gets a Record if its
// record differs. If it is not running, or there is none, the machine gets a Start, unless the start must wait.
// Surplus instances are stopped or reported.
func (a *assignment) planMachine(w Wanted) []Action {
	have := a.byMachine[w.ID]
	if w.Unmanaged {
		return nil
	}
	if w.Life == state.Dead || neverStarted(w, have) {
		return a.takeDown(w, have)
	}

	keep, surplus := chooseInstance(w, have)
	actions := a.stopSurplus(w, keep, surplus)

	if keep == nil || !keep.Running {
		// The start must wait for its retry. It must also wait while the provider lists the machine's
		// recorded instance for a different environment.
		mustWait := w.AwaitsRetry || a.recordedElsewhere[w.ID]
		if mustWait {
			return actions
		}
		return append(actions, Action{Verb: Start, Machine: w.ID})
	}

	if keep.ID != w.Instance || addressDiffers(keep.Private, w.Private) || addressDiffers(keep.Public, w.Public) {
		actions = append(actions, Action{
			Verb:     Record,
			Machine:  w.ID,
			Instance: keep.ID,
			Private:  keep.Private,
			Public:   keep.Public,
		})
	}

	return actions
}

// addressDiffers reports whether the provider lists an address that is not the recorded one. The argument
// listed is "" if the provider does not know the address.
func addressDiffers(listed, recorded string) bool { return listed != "" && listed != recorded }

// takeDown plans the end of a machine. While the machine has instances, it returns their stops, including
// stops of recorded instances that the provider does not list. Otherwise it returns the machine's removal. If
// the harvest mode leaves the instances of such machines alone, it returns the removal at once, which names
// the listed instances that stay.
func (a *assignment) takeDown(w Wanted, have []provider.Instance) []Action {
	instances := slices.Concat(have, a.unlisted[w.ID])
	if len(instances) > 0 && a.harvest.StopsGone() {
		return stopActions(w.ID, instances)
	}

	// The removal names only listed instances, which are known to exist.
	var remaining []string
	for _, i := range have {
		remaining = append(remaining, i.ID)
	}
	return []Action{{Verb: Remove, Machine: w.ID, Instance: strings.Join(remaining, " ")}}
}

// stopSurplus returns the actions that stop the surplus instances of a machine, which keeps the instance
// keep. If the harvest mode leaves unknown instances alone, it only reports the surplus instances as
// problems.
func (a *assignment) stopSurplus(w Wanted, keep *provider.Instance, surplus []provider.Instance) []Action {
	if a.harvest.StopsUnknown() {
		return stopActions(w.ID, surplus)
	}

	// There are surplus instances only if keep is not nil.
	for _, i := range surplus {
		a.problemf("instance %[1]q is tagged with machine %[2]s, whose instance is %[3]q; bijou leaves %[1]q alone", i.ID,
			w.ID, keep.ID)
	}

	return nil
}

// neverStarted reports whether a dying machine can be removed at once. This is the case if the machine never
// had an agent, and none of its units needs an agent for its removal.
func neverStarted(w Wanted, have []provider.Instance) bool {
	running := slices.ContainsFunc(have, func(i provider.Instance) bool { return i.Running })
	return w.Life == state.Dying && w.Instance == "" && w.Units == 0 && !running
}

// chooseInstance chooses the instance that the machine keeps. This is the recorded instance if the provider
// lists it, running or stopped, and otherwise the first running one. The machine's other instances are
// surplus. If no instance can be chosen, it returns nil for both: the stopped instances are not surplus,
// since Start can start one of them again with its files.
func chooseInstance(w Wanted, have []provider.Instance) (keep *provider.Instance, surplus []provider.Instance) {
	at := slices.IndexFunc(have, func(i provider.Instance) bool { return i.ID == w.Instance })
	if at < 0 {
		at = slices.IndexFunc(have, func(i provider.Instance) bool { return i.Running })
	}
	if at < 0 {
		return nil, nil
	}

	return &have[at], slices.Delete(slices.Clone(have), at, at+1)
}

// stopActions returns a Stop for each instance. If machine is "", each action names the machine that its
// instance names.
func stopActions(machine string, instances []provider.Instance) []Action {
	var actions []Action
	for _, i := range instances {
		actions = append(actions, Action{Verb: Stop, Machine: cmp.Or(machine, i.Machine), Instance: i.ID})
	}
	return actions
}

// problemf adds a problem, which the provisioner reports.
func (a *assignment) problemf(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

// equal reports whether w and o describe the same machines and settings. It ignores Next, which changes only
// when machines are added.
func (w Want) equal(o Want) bool {
	return w.Environment == o.Environment && w.Harvest == o.Harvest && slices.Equal(w.Machines, o.Machines)
}

// startsInstance reports whether the machine needs an instance of the provider.
func (w Want) startsInstance(machine string) bool {
	return slices.ContainsFunc(w.Machines, func(m Wanted) bool {
		return m.ID == machine && m.Life != state.Dead && !m.Unmanaged
	})
}
