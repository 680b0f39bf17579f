package provision

import (
	"cmp"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state"
)

// assignment maps the provider's instances to machines.
type assignment struct {
	harvest   state.Harvest
	byMachine map[string][]provider.Instance // the instances that certainly belong to a machine in the state
	gone      []provider.Instance            // the instances of machines that were removed
	unknown   []provider.Instance            // the instances of machines that never existed
	// recordedElsewhere contains machines whose recorded instance the provider lists for a different
	// environment.
	recordedElsewhere map[string]bool
	// unlisted are recorded instances of dead machines that the provider does not list, by machine. They may
	// still exist: a provider on this host may know less than the provider on the host that started them.
	unlisted map[string][]provider.Instance
	problems []string // contradictions in the provider's list
}

// assignInstances assigns each instance to its machine, or to one of two lists: gone if its machine was
// removed, and unknown if its machine never existed. It leaves out instances of different environments, and
// reports those that are recorded in this environment as problems. It also leaves out instances of unmanaged
// machines, and reports such an instance as a problem unless it is recorded. It also leaves out the instances
// that dropDuplicates drops. The result also has the recorded instances of dead machines that the provider does
// not list.
func assignInstances(want Want, have []provider.Instance) *assignment {
	a := &assignment{
		harvest:           want.Harvest,
		byMachine:         map[string][]provider.Instance{},
		recordedElsewhere: map[string]bool{},
	}

	r := newRecordIndex(want)
	a.unlisted = findUnlisted(have, r)

	for _, i := range a.dropDuplicates(have, r, want.Environment) {
		owner := a.findOwner(i, r)
		machine, known := r.machines[owner]
		recorded := len(r.instances[i.ID]) > 0

		switch {
		case i.Environment != want.Environment:
			a.noteForeign(i, r)
		case known && machine.Unmanaged && !recorded:
			a.problemf("instance %q claims to belong to machine %s, which has no instance; bijou leaves the instance alone",
				i.ID, i.Machine)
		case known && machine.Unmanaged:
			// The provider did not start the machine, so it must not stop the machine either.
		case known:
			a.byMachine[owner] = append(a.byMachine[owner], i)
		case state.IsMachineID(owner, want.Next):
			a.gone = append(a.gone, i)
		default:
			a.unknown = append(a.unknown, i)
		}
	}

	return a
}

// findUnlisted returns the recorded instances that the provider does not list, by machine, if all their
// machines are dead. An instance that is also recorded for a living machine belongs to that machine.
func findUnlisted(have []provider.Instance, r recordIndex) map[string][]provider.Instance {
	listed := map[string]bool{}
	for _, i := range have {
		listed[i.ID] = true
	}

	alive := func(machine string) bool { return r.machines[machine].Life != state.Dead }
	unlisted := map[string][]provider.Instance{}
	for id, machines := range r.instances {
		if listed[id] || slices.ContainsFunc(machines, alive) {
			continue
		}
		// A machine has at most one recorded instance.
		for _, m := range machines {
			unlisted[m] = []provider.Instance{{ID: id, Machine: m}}
		}
	}

	return unlisted
}

// recordIndex contains the recorded machines, and the machines of each recorded instance.
type recordIndex struct {
	machines  map[string]Wanted
	instances map[string][]string // usually one machine for each instance
}

// newRecordIndex returns the index of the recorded machines and instances.
func newRecordIndex(want Want) recordIndex {
	r := recordIndex{machines: map[string]Wanted{}, instances: map[string][]string{}}
	for _, w := range want.Machines {
		r.machines[w.ID] = w
		if w.Instance != "" {
			r.instances[w.Instance] = append(r.instances[w.Instance], w.ID)
		}
	}

	return r
}

// dropDuplicates returns at most one entry for each instance ID. It drops instances without an ID, and reports
// them as a problem. If one of an instance's entries names a different environment, it keeps that entry.
// Otherwise it merges the entries. It drops an instance whose entries disagree if no machine has recorded the
// instance.
func (a *assignment) dropDuplicates(
	have []provider.Instance,
	r recordIndex,
	environment string,
) (kept []provider.Instance) {
	sorted := slices.SortedFunc(slices.Values(have), func(x, y provider.Instance) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), strings.Compare(x.Machine, y.Machine))
	})

	isForeign := func(i provider.Instance) bool { return i.Environment != environment }
	for len(sorted) > 0 {
		// Take the entries with the first entry's ID from the list.
		first := sorted[0]
		count := 1
		for count < len(sorted) && sorted[count].ID == first.ID {
			count++
		}
		entries := sorted[:count]
		sorted = sorted[count:]

		if first.ID == "" {
			a.problemf("%d instances have no id, such as that of machine %q; bijou leaves them alone", count,
				first.Machine)
			continue
		}

		if foreign := slices.IndexFunc(entries, isForeign); foreign >= 0 {
			kept = append(kept, entries[foreign])
			continue
		}
		if merged, ok := a.mergeDuplicates(entries, r); ok {
			kept = append(kept, merged)
		}
	}

	return kept
}

// mergeDuplicates merges the entries of one instance. It reports several entries as a problem. If the entries
// disagree, it prefers the entry of a machine that has recorded the instance, and counts the instance as running
// if any entry does. It then returns false if no machine has recorded the instance. Otherwise it returns true.
func (a *assignment) mergeDuplicates(entries []provider.Instance, r recordIndex) (provider.Instance, bool) {
	merged := entries[0]
	if len(entries) == 1 {
		return merged, true
	}

	disagree := slices.ContainsFunc(entries, func(e provider.Instance) bool { return e != entries[0] })
	if !disagree {
		a.problemf("instance %q is listed %d times", merged.ID, len(entries))
		return merged, true
	}

	a.problemf("instance %q is listed %d times, with different data; one entry is for machine %q", merged.ID,
		len(entries), merged.Machine)
	recorders := r.instances[merged.ID]
	preferred := slices.IndexFunc(entries, func(e provider.Instance) bool {
		return slices.Contains(recorders, e.Machine)
	})
	if preferred >= 0 {
		merged = entries[preferred]
	}

	// An instance that might be running must not be started again.
	merged.Running = slices.ContainsFunc(entries, func(e provider.Instance) bool { return e.Running })
	return merged, len(recorders) > 0
}

// findOwner returns the machine of an instance. A machine that has recorded the instance takes precedence
// over the machine that the instance names. If the two differ, or if several machines have recorded the
// instance, findOwner reports a problem.
func (a *assignment) findOwner(i provider.Instance, r recordIndex) string {
	recorders := r.instances[i.ID]
	switch {
	case len(recorders) == 0:
		return i.Machine
	case len(recorders) > 1:
		a.problemf("instance %q is recorded for the machines %s", i.ID, strings.Join(recorders, ", "))
		return a.preferAlive(i, recorders, r)
	case recorders[0] != i.Machine:
		a.problemf("instance %q of machine %s claims to belong to machine %q", i.ID, recorders[0], i.Machine)
	}

	return recorders[0]
}

// preferAlive chooses the owner of an instance from its recorders, the machines that have recorded it. It
// prefers living machines, so that the instance is not stopped because one of the machines is dead. Among the
// living machines, it prefers the machine that the instance names. If all machines are dead, it returns the
// first.
func (a *assignment) preferAlive(i provider.Instance, recorders []string, r recordIndex) string {
	alive := slices.DeleteFunc(slices.Clone(recorders), func(id string) bool {
		return r.machines[id].Life == state.Dead
	})

	switch {
	case slices.Contains(alive, i.Machine):
		return i.Machine
	case len(alive) > 0:
		return alive[0]
	}

	return recorders[0]
}

// noteForeign handles an instance that the provider lists for a different environment. For each machine in this
// environment that has recorded the instance, it adds the machine to recordedElsewhere and reports a problem.
func (a *assignment) noteForeign(i provider.Instance, r recordIndex) {
	for _, id := range r.instances[i.ID] {
		a.recordedElsewhere[id] = true
		a.problemf("instance %q of machine %s is tagged with model %q; bijou leaves the instance alone", i.ID, id,
			i.Environment)
	}
}
