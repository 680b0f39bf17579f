package state

import "bijou/state/keys"

// DropClaim removes a machine's claim, as putting the store back to an earlier time does.
func (tx *Tx) DropClaim(machine string) error {
	tx.keys.Remove(keys.Claim(MachineAgent(machine)))
	return nil
}

// WatchUnits covers every unit of a service.
func WatchUnits(service string) Scope {
	return Scope{Prefixes: []string{keys.ServiceUnits(service)}}
}
