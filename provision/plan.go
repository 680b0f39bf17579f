package provision

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state"
)

// Want holds what state wants of the provider, at one moment.
type Want struct {
	Environment string        // uuid; instances with another one are never touched
	Harvest     state.Harvest // which instances are stopped
	Next        int           // the number of the next machine: one below it without a record was removed
	Machines    []Wanted
}

// Wanted holds what Plan must know of one machine.
type Wanted struct {
	ID       string
	Life     state.Life
	Instance string // as recorded; "" is not provisioned
	// Private and Public are the recorded addresses.
	Private, Public string
	Units           int // how many units are assigned; of a machine that is not alive
	// Unmanaged: the machine's agent runs outside the provider's reach (machine 0
	// is the bootstrapped process). Its instance is never started or stopped.
	Unmanaged bool
	// AwaitsRetry: a start has failed, and it is not (yet) to be tried again.
	AwaitsRetry bool
}

// Verb names what an Action does.
type Verb string

// The verbs of Plan.
const (
	Start  Verb = "start"  // start an instance for the machine, and record it
	Record Verb = "record" // another instance runs than is recorded, or has other addresses
	Stop   Verb = "stop"   // end the instance: its machine is gone, or nobody knows it
	Remove Verb = "remove" // take the machine out of state; an Instance is left to run
)

// Action is one thing to do. Actions on different machines do not wait for one
// another; all are idempotent.
type Action struct {
	Verb            Verb
	Machine         string // "" for an instance that names no machine
	Instance        string // not for Start
	Private, Public string // of Record: the instance's addresses, as far as the provider knows
}

// Plan compares the machines in state with the provider's instances (read before the machines) and
// returns what is to be done, and what is wrong with what the provider lists. It does no I/O.
//
// A provider may list anything. What state has recorded goes before what the provider says: an
// instance that a machine has is that machine's, and is stopped only if the machine is dead. One
// that cannot be told apart from another, or has no name, is left alone.
func Plan(want Want, have []provider.Instance) (actions []Action, wrong []string) {
	assigned := assignInstances(want, have)
	for _, w := range want.Machines {
		actions = append(actions, assigned.planMachine(w)...)
	}
	if want.Harvest.StopsGone() {
		actions = append(actions, stopActions("", assigned.gone)...)
	}

	if want.Harvest.StopsUnknown() {
		actions = append(actions, stopActions("", assigned.unknown)...)
	} else {
		for _, i := range assigned.unknown {
			assigned.problemf(
				"instance %q belongs to machine %q, by its own record, which this model never had: bijou leaves it alone",
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

// planMachine returns the actions for one wanted machine: start, stop or record its instance.
func (a *assignment) planMachine(w Wanted) []Action {
	have := a.byMachine[w.ID]
	if w.Unmanaged {
		return nil
	}
	if w.Life == state.Dead || neverStarted(w, have) {
		return a.takeDown(w, have)
	}

	keep, rest := chooseInstance(w, have)
	actions := a.stopSurplus(w, keep, rest)
	runs := keep != nil && keep.Running // the recorded one may have ended

	switch {
	case !runs && (w.AwaitsRetry || a.recordedElsewhere[w.ID]):
		// Its start waits for a retry, or its recorded instance is that of a different machine.
	case !runs:
		actions = append(actions, Action{Verb: Start, Machine: w.ID})
	case keep.ID != w.Instance || addressDiffers(keep.Private, w.Private) ||
		addressDiffers(keep.Public, w.Public):
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

func addressDiffers(told, recorded string) bool { return told != "" && told != recorded }

// takeDown removes the machine once nothing is left to stop. It stops a recorded instance even if the
// provider does not list it, and then clears the record.
func (a *assignment) takeDown(w Wanted, have []provider.Instance) []Action {
	if all := slices.Concat(have, a.unlisted[w.ID]); len(all) > 0 && a.harvest.StopsGone() {
		return stopActions(w.ID, all)
	}

	var left []string
	for _, i := range have {
		left = append(left, i.ID)
	}
	return []Action{{Verb: Remove, Machine: w.ID, Instance: strings.Join(left, " ")}}
}

// stopSurplus returns the actions that stop a machine's other instances. If the harvest mode leaves unknown
// instances alone, it only notes them as problems.
func (a *assignment) stopSurplus(w Wanted, keep *provider.Instance, rest []provider.Instance) []Action {
	if a.harvest.StopsUnknown() {
		return stopActions(w.ID, rest)
	}

	for _, i := range rest {
		a.problemf("instance %q belongs to machine %s, by its own record, whose instance is %q: bijou leaves it alone", i.ID, w.ID,
			keep.ID)
	}

	return nil
}

// neverStarted reports whether a dying machine can be removed at once: it never had an agent, and no unit
// needs one to leave.
func neverStarted(w Wanted, have []provider.Instance) bool {
	running := slices.ContainsFunc(have, func(i provider.Instance) bool { return i.Running })
	return w.Life == state.Dying && w.Instance == "" && w.Units == 0 && !running
}

// chooseInstance returns the machine's instance: the recorded one if the provider lists it, running or not,
// or else the first that runs. All others are surplus. If it returns none, nothing is surplus, since Start
// can bring a stopped instance back with its files.
func chooseInstance(w Wanted, have []provider.Instance) (keep *provider.Instance, rest []provider.Instance) {
	at := slices.IndexFunc(have, func(i provider.Instance) bool { return i.ID == w.Instance })
	if at < 0 {
		at = slices.IndexFunc(have, func(i provider.Instance) bool { return i.Running })
	}
	if at < 0 {
		return nil, nil
	}

	return &have[at], slices.Delete(slices.Clone(have), at, at+1)
}

// stopActions returns an action for each instance. Without a machine, each action is in the name of the
// machine that the instance names itself.
func stopActions(machine string, instances []provider.Instance) []Action {
	var actions []Action
	for _, i := range instances {
		actions = append(actions, Action{Verb: Stop, Machine: cmp.Or(machine, i.Machine), Instance: i.ID})
	}
	return actions
}

func (a *assignment) problemf(format string, args ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, args...))
}

func (w Want) equal(o Want) bool {
	return w.Environment == o.Environment && w.Harvest == o.Harvest && slices.Equal(w.Machines, o.Machines)
}

func (w Want) startsInstance(machine string) bool {
	return slices.ContainsFunc(w.Machines, func(m Wanted) bool {
		return m.ID == machine && m.Life != state.Dead && !m.Unmanaged
	})
}
