package status

import (
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// AddConfinement sets Confined for each running machine of a confined environment. A machine is confined if
// its agent has a lease from a gateway.
func (s *Status) AddConfinement(v *state.View) error {
	env, err := v.Environment()
	if err != nil {
		return err
	}
	if !env.IsConfined() {
		return nil
	}

	leases, err := v.Keys().List(keys.GatewayLeases)
	if err != nil {
		return err
	}

	for id, m := range s.Machines {
		if m.State != state.MachineRunning {
			continue
		}

		prefix := keys.GatewayLeasesOf(state.MachineAgent(id))
		isOwn := func(lease keyspace.KeyValue) bool { return strings.HasPrefix(lease.Key, prefix) }
		confined := slices.ContainsFunc(leases, isOwn)
		m.Confined = &confined
		s.Machines[id] = m
	}
	return nil
}
