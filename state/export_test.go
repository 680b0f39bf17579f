package state

import "bijou/state/keys"

// DropClaim removes a machine's claim, as the restoration of an earlier backup would.
func (tx *Tx) DropClaim(machine string) error {
	tx.keys.Remove(keys.Claim(MachineAgent(machine)))
	return nil
}

// WatchUnits watches every unit of a service.
func WatchUnits(service string) Scope {
	return Scope{Prefixes: []string{keys.ServiceUnits(service)}}
}
