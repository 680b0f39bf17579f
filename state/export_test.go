package state

import (
	"strings"

	"bijou/state/keys"
)

// DropClaim removes a machine's claim, as putting the store back to an earlier time does.
func (tx *Tx) DropClaim(machine string) error {
	tx.keys.Remove(keys.Claim(MachineAgent(machine)))
	return nil
}

// WatchUnits covers every unit of a service.
func WatchUnits(service string) Scope {
	return Scope{Prefixes: []string{keys.ServiceUnits(service)}}
}

// LogSource parses a key from WatchLogs: the unit or machine whose log changed.
func LogSource(key string) (source string, ok bool) {
	return strings.CutPrefix(key, keys.LogHeads)
}
