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
// removed, and unknown if its machine never existed. It reports instances of a different environment as a
// problem, but only if they are recorded here.
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
		_, known := r.machines[owner]

		switch {
		case i.Environment != want.Environment:
			a.noteForeign(i, r)
		case known && r.machines[owner].Unmanaged && len(r.instances[i.ID]) == 0:
			a.problemf("instance %q claims to belong to machine %s, which has no instance; bijou leaves it alone", i.ID, i.Machine)
		case known && r.machines[owner].Unmanaged:
			// The provider did not start that machine, so it does not stop it either.
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
	missing := map[string][]provider.Instance{}
	for id, machines := range r.instances {
		if listed[id] || slices.ContainsFunc(machines, alive) {
			continue
		}
		for _, m := range machines {
			missing[m] = []provider.Instance{{ID: id, Machine: m}}
		}
	}

	return missing
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

// dropDuplicates drops instances without an ID, and merges entries with the same ID. It keeps an instance
// with several entries if the instance is recorded, or if all of its entries agree. An instance with an entry
// for a different environment belongs to that environment.
func (a *assignment) dropDuplicates(
	have []provider.Instance,
	r recordIndex,
	environment string,
) (kept []provider.Instance) {
	sorted := slices.SortedFunc(slices.Values(have), func(x, y provider.Instance) int {
		return cmp.Or(strings.Compare(x.ID, y.ID), strings.Compare(x.Machine, y.Machine))
	})

	for len(sorted) > 0 {
		first := sorted[0]
		n := 1
		for n < len(sorted) && sorted[n].ID == first.ID {
			n++
		}
		same := sorted[:n]
		sorted = sorted[n:]
		if first.ID == "" {
			a.problemf("%d instances have no id, such as that of machine %q; bijou leaves them alone", n, first.Machine)
			continue
		}

		if other := slices.IndexFunc(same, func(s provider.Instance) bool { return s.Environment != environment }); other >= 0 {
			kept = append(kept, same[other])
		} else if i, ok := a.mergeDuplicates(same, r); ok {
			kept = append(kept, i)
		}
	}

	return kept
}

// mergeDuplicates merges entries with the same ID into one instance. If they disagree, it reports a problem,
// and uses the entry of the machine that has recorded the ID. It returns false if no machine has recorded it.
func (a *assignment) mergeDuplicates(same []provider.Instance, r recordIndex) (provider.Instance, bool) {
	i := same[0]
	if len(same) == 1 {
		return i, true
	}

	agree := !slices.ContainsFunc(same, func(s provider.Instance) bool { return s != i })
	if agree {
		a.problemf("instance %q is listed %d times", i.ID, len(same))
		return i, true
	}

	a.problemf("instance %q is listed %d times, with different data; one entry is for machine %q", i.ID,
		len(same), i.Machine)
	recorded := len(r.instances[i.ID]) > 0
	if own := slices.IndexFunc(same, func(s provider.Instance) bool {
		return slices.Contains(r.instances[i.ID], s.Machine)
	}); own >= 0 {
		i = same[own]
	}

	// If one entry shows the instance as running, it is not started again.
	i.Running = slices.ContainsFunc(same, func(s provider.Instance) bool { return s.Running })
	return i, recorded
}

// findOwner returns the machine of an instance. A machine that has recorded the instance takes precedence
// over the machine that the instance names.
func (a *assignment) findOwner(i provider.Instance, r recordIndex) string {
	has := r.instances[i.ID]
	if len(has) == 0 || slices.Contains(has, i.Machine) && len(has) == 1 {
		return i.Machine
	}
	if len(has) > 1 {
		a.problemf("instance %q is recorded for the machines %s", i.ID, strings.Join(has, ", "))
		return a.preferAlive(i, has, r)
	}

	a.problemf("instance %q of machine %s claims to belong to machine %q", i.ID, has[0], i.Machine)
	return has[0]
}

// preferAlive returns the machine of an instance that several machines have recorded. It prefers living
// machines, so that the instance is not stopped because one of the machines is dead.
func (a *assignment) preferAlive(i provider.Instance, has []string, r recordIndex) string {
	alive := slices.DeleteFunc(slices.Clone(has), func(id string) bool {
		return r.machines[id].Life == state.Dead
	})

	switch {
	case slices.Contains(alive, i.Machine):
		return i.Machine
	case len(alive) > 0:
		return alive[0]
	}

	return has[0]
}

func (a *assignment) noteForeign(i provider.Instance, r recordIndex) {
	for _, id := range r.instances[i.ID] {
		a.recordedElsewhere[id] = true
		a.problemf("instance %q of machine %s belongs to model %q, by its own record: bijou leaves it alone", i.ID, id,
			i.Environment)
	}
}
