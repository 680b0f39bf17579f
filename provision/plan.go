package provision

import (
	"slices"
	"strings"

	"bijou/provision/provider"
)

// Wanted is what Plan must know of one machine.
type Wanted struct {
	ID       string
	Life     Life
	Instance string // as recorded; "" is not provisioned
	Units    int    // how many units are assigned; of a machine that is not alive
	// Hosted: the machine's agent runs outside the provider's reach (machine 0
	// is the bootstrapped process). Its instance is never started or stopped.
	Hosted bool
	// Held: a start has failed, and it is not (yet) to be tried again.
	Held bool
}

// Life is how far a machine is on its way out, in state's words.
type Life string

// The stages of a machine's life.
const (
	Alive Life = "alive"
	Dying Life = "dying"
	Dead  Life = "dead"
)

// Verb is what an Action does.
type Verb string

// The verbs of Plan.
const (
	Start  Verb = "start"  // start an instance for the machine, and record it
	Record Verb = "record" // the instance was started but not recorded, or another one was
	Stop   Verb = "stop"   // end the instance: its machine is dead or unknown, or it is one too many
	Remove Verb = "remove" // take the machine out of state: nothing is left of it
)

// Action is one thing to do. Actions on different machines do not wait for one
// another; all are idempotent.
type Action struct {
	Verb     Verb
	Machine  string // "" for an instance that names no machine
	Instance string // not for Start and Remove
}

// Plan compares the machines in state with the provider's instances (read
// before the machines) and says what is to be done. It does no I/O.
func Plan(want []Wanted, have []provider.Instance) []Action {
	of := map[string][]provider.Instance{}
	for _, i := range have {
		of[i.Machine] = append(of[i.Machine], i)
	}
	var actions []Action
	for _, w := range want {
		actions = append(actions, planMachine(w, of[w.ID])...)
		delete(of, w.ID)
	}
	for _, strays := range of {
		actions = append(actions, stop(strays)...)
	}
	slices.SortStableFunc(actions, func(a, b Action) int {
		if c := strings.Compare(a.Machine, b.Machine); c != 0 {
			return c
		}
		return strings.Compare(a.Instance, b.Instance)
	})
	return actions
}

// planMachine decides for one machine and the instances that name it.
func planMachine(w Wanted, have []provider.Instance) []Action {
	if w.Hosted {
		return nil
	}
	if w.Life == Dead || forgotten(w, have) {
		if len(have) > 0 {
			return stop(have)
		}
		return []Action{{Verb: Remove, Machine: w.ID}}
	}
	keep, rest := choose(w, have)
	actions := stop(rest)
	switch {
	case keep == nil && w.Held:
	case keep == nil:
		actions = append(actions, Action{Verb: Start, Machine: w.ID})
	case keep.ID != w.Instance:
		actions = append(actions, Action{Verb: Record, Machine: w.ID, Instance: keep.ID})
	}
	return actions
}

// forgotten tells if a dying machine has no agent that could end it: it never
// had one, and no unit needs one to say good-bye.
func forgotten(w Wanted, have []provider.Instance) bool {
	running := slices.ContainsFunc(have, func(i provider.Instance) bool { return i.Running })
	return w.Life == Dying && w.Instance == "" && w.Units == 0 && !running
}

// choose picks the running instance that the machine keeps: the recorded one,
// else the first. One that has ended is neither kept nor stopped, since Start
// brings it back with its files.
func choose(w Wanted, have []provider.Instance) (keep *provider.Instance, rest []provider.Instance) {
	var running []provider.Instance
	for _, i := range have {
		if i.Running {
			running = append(running, i)
		}
	}
	if len(running) == 0 {
		return nil, nil
	}
	at := max(0, slices.IndexFunc(running, func(i provider.Instance) bool { return i.ID == w.Instance }))
	return &running[at], slices.Delete(slices.Clone(running), at, at+1)
}

// stop ends all of the instances.
func stop(instances []provider.Instance) []Action {
	var actions []Action
	for _, i := range instances {
		actions = append(actions, Action{Verb: Stop, Machine: i.Machine, Instance: i.ID})
	}
	return actions
}
