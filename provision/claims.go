package provision

import (
	"cmp"
	"slices"
	"strings"

	"bijou/provision/provider"
	"bijou/state"
)

// claims is whose instance each of the provider's is.
type claims struct {
	harvest state.Harvest
	of      map[string][]provider.Instance // by machine in state, those that are safely its
	gone    []provider.Instance            // of machines that were removed
	unknown []provider.Instance            // of machines that never were
	// elsewhere: the machine's recorded instance is there, but the provider says
	// that it is another environment's.
	elsewhere map[string]bool
	// untold: dead machines' recorded instances that the provider does not list, by
	// machine. They may be there all the same: a provider may know less here than
	// on the host where it started them.
	untold map[string][]provider.Instance
	wrong  []string // what cannot be
}

// sortOut says whose each instance is, in the order of their ids.
func sortOut(want Want, have []provider.Instance) *claims {
	c := &claims{harvest: want.Harvest, of: map[string][]provider.Instance{}, elsewhere: map[string]bool{}}
	r := recordsOf(want)
	c.untold = untold(have, r)
	for _, i := range c.distinct(have, r, want.Environment) {
		owner := c.owner(i, r)
		_, known := r.machines[owner]
		switch {
		case i.Environment != want.Environment:
			c.foreign(i, r)
		case known && r.machines[owner].Hosted:
			c.hosted(i, r)
		case known:
			c.of[owner] = append(c.of[owner], i)
		case state.WasMachine(owner, want.Next):
			c.gone = append(c.gone, i)
		default:
			c.unknown = append(c.unknown, i)
		}
	}
	return c
}

// untold are the recorded instances that the provider does not tell, of machines
// that are dead. One that a machine has which is not dead is that one's.
func untold(have []provider.Instance, r records) map[string][]provider.Instance {
	told := map[string]bool{}
	for _, i := range have {
		told[i.ID] = true
	}
	alive := func(machine string) bool { return r.machines[machine].Life != Dead }
	missing := map[string][]provider.Instance{}
	for id, machines := range r.instances {
		if told[id] || slices.ContainsFunc(machines, alive) {
			continue
		}
		for _, m := range machines {
			missing[m] = []provider.Instance{{ID: id, Machine: m}}
		}
	}
	return missing
}

// records is what state has recorded, by machine and by instance.
type records struct {
	machines  map[string]Wanted
	instances map[string][]string // the machines that have it: one, if all is well
}

func recordsOf(want Want) records {
	r := records{machines: map[string]Wanted{}, instances: map[string][]string{}}
	for _, w := range want.Machines {
		r.machines[w.ID] = w
		if w.Instance != "" {
			r.instances[w.Instance] = append(r.instances[w.Instance], w.ID)
		}
	}
	return r
}

// distinct drops instances without an id, and what is told more than once: of an
// instance that is recorded one remains, of another one only if all agree. One
// that is another environment's, too, is.
func (c *claims) distinct(have []provider.Instance, r records, environment string) (one []provider.Instance) {
	sorted := slices.SortedFunc(slices.Values(have), func(a, b provider.Instance) int {
		return cmp.Or(strings.Compare(a.ID, b.ID), strings.Compare(a.Machine, b.Machine))
	})
	for len(sorted) > 0 {
		first, n := sorted[0], 1
		for n < len(sorted) && sorted[n].ID == first.ID {
			n++
		}
		same := sorted[:n]
		sorted = sorted[n:]
		if first.ID == "" {
			c.wrongf("%d instances have no id, of machine %q for one: they are left alone", n, first.Machine)
			continue
		}
		if other := slices.IndexFunc(same, func(s provider.Instance) bool { return s.Environment != environment }); other >= 0 {
			one = append(one, same[other])
		} else if i, ok := c.agreed(same, r); ok {
			one = append(one, i)
		}
	}
	return one
}

// agreed is what is to be believed of an instance that is told once or more.
func (c *claims) agreed(same []provider.Instance, r records) (provider.Instance, bool) {
	i := same[0]
	if len(same) == 1 {
		return i, true
	}
	agree := !slices.ContainsFunc(same, func(s provider.Instance) bool { return s != i })
	if agree {
		c.wrongf("instance %q is told %d times", i.ID, len(same))
		return i, true
	}
	c.wrongf("instance %q is told %d times, as machine %q's and otherwise", i.ID, len(same), i.Machine)
	recorded := len(r.instances[i.ID]) > 0
	if own := slices.IndexFunc(same, func(s provider.Instance) bool {
		return slices.Contains(r.instances[i.ID], s.Machine)
	}); own >= 0 {
		i = same[own]
	}
	// What runs for one of them runs: it is not started beside.
	i.Running = slices.ContainsFunc(same, func(s provider.Instance) bool { return s.Running })
	return i, recorded
}

// owner is the machine that has recorded the instance, else the one that it names.
func (c *claims) owner(i provider.Instance, r records) string {
	has := r.instances[i.ID]
	if len(has) == 0 || slices.Contains(has, i.Machine) && len(has) == 1 {
		return i.Machine
	}
	if len(has) > 1 {
		c.wrongf("instance %q is recorded for the machines %s", i.ID, strings.Join(has, ", "))
		return c.living(i, has, r)
	}
	c.wrongf("instance %q of machine %s says it is of machine %q", i.ID, has[0], i.Machine)
	return has[0]
}

// living is the machine whose an instance of several is taken to be: one that is
// not dead, so that it is not stopped for another's sake.
func (c *claims) living(i provider.Instance, has []string, r records) string {
	alive := slices.DeleteFunc(slices.Clone(has), func(id string) bool { return r.machines[id].Life == Dead })
	switch {
	case slices.Contains(alive, i.Machine):
		return i.Machine
	case len(alive) > 0:
		return alive[0]
	}
	return has[0]
}

// foreign passes over an instance of another environment.
func (c *claims) foreign(i provider.Instance, r records) {
	for _, id := range r.instances[i.ID] {
		c.elsewhere[id] = true
		c.wrongf("instance %q of machine %s says it is of environment %q: it is left alone", i.ID, id, i.Environment)
	}
}

// hosted passes over an instance that names a machine which is not the provider's.
func (c *claims) hosted(i provider.Instance, r records) {
	if len(r.instances[i.ID]) == 0 {
		c.wrongf("instance %q says it is of machine %s, which has none: it is left alone", i.ID, i.Machine)
	}
}
