package provision

import (
	"cmp"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state"
)

// assignment says to which machine each of the provider's instances belongs.
type assignment struct {
	harvest   state.Harvest
	byMachine map[string][]provider.Instance // by machine in state, those that are safely its
	gone      []provider.Instance            // of machines that were removed
	unknown   []provider.Instance            // of machines that never were
	// recordedElsewhere: the machine's recorded instance is there, but the provider says
	// that it is another environment's.
	recordedElsewhere map[string]bool
	// unlisted: dead machines' recorded instances that the provider does not list, by
	// machine. They may be there all the same: a provider may know less here than
	// on the host where it started them.
	unlisted map[string][]provider.Instance
	problems []string // what cannot be
}

// assignInstances assigns each instance to its machine, or to one of two lists: gone, if its machine was removed,
// and unknown, if its machine never existed. It only notes a problem for an instance of a different environment.
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
			a.problemf("instance %q says it is of machine %s, which has none: it is left alone", i.ID, i.Machine)
		case known && r.machines[owner].Unmanaged:
			// Whoever made that machine also stops it.
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

// findUnlisted returns the recorded instances that the provider does not list, by their machines, if all
// these are dead. An instance that a living machine has, too, belongs to the living one.
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

// recordIndex holds what state has recorded, by machine and by instance.
type recordIndex struct {
	machines  map[string]Wanted
	instances map[string][]string // the machines that have it: one, if all is well
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

// dropDuplicates drops instances without an id, and merges those that are listed more than once. It keeps
// such an instance if it is recorded, or if all its entries agree. An instance that is listed for a
// different environment, too, belongs to that environment.
func (a *assignment) dropDuplicates(
	have []provider.Instance,
	r recordIndex,
	environment string,
) (one []provider.Instance) {
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
			a.problemf("%d instances have no id, of machine %q for one: they are left alone", n, first.Machine)
			continue
		}

		if other := slices.IndexFunc(same, func(s provider.Instance) bool { return s.Environment != environment }); other >= 0 {
			one = append(one, same[other])
		} else if i, ok := a.mergeDuplicates(same, r); ok {
			one = append(one, i)
		}
	}

	return one
}

// mergeDuplicates makes one instance of several entries with the same id. Entries that disagree are a
// problem. Then the entry of the machine that has recorded the id counts; it returns false if no machine
// has.
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

	a.problemf("instance %q is listed %d times, once as that of machine %q and once differently", i.ID,
		len(same), i.Machine)
	recorded := len(r.instances[i.ID]) > 0
	if own := slices.IndexFunc(same, func(s provider.Instance) bool {
		return slices.Contains(r.instances[i.ID], s.Machine)
	}); own >= 0 {
		i = same[own]
	}

	// If one entry says that the instance runs, it is not started again.
	i.Running = slices.ContainsFunc(same, func(s provider.Instance) bool { return s.Running })
	return i, recorded
}

// findOwner returns the machine of an instance. A machine that has recorded the instance goes before the
// machine that the instance names.
func (a *assignment) findOwner(i provider.Instance, r recordIndex) string {
	has := r.instances[i.ID]
	if len(has) == 0 || slices.Contains(has, i.Machine) && len(has) == 1 {
		return i.Machine
	}
	if len(has) > 1 {
		a.problemf("instance %q is recorded for the machines %s", i.ID, strings.Join(has, ", "))
		return a.preferAlive(i, has, r)
	}

	a.problemf("instance %q of machine %s says it is of machine %q", i.ID, has[0], i.Machine)
	return has[0]
}

// preferAlive returns the machine to which an instance of several machines belongs, a living one first.
// Such an instance is not stopped because one of its machines is dead.
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
