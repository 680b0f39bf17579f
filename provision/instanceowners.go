package provision

import (
	"sync"

	"bijou/state"
)

// instanceOwners says which machine has which instance, as recorded or about to be. Its methods may
// be called from several goroutines.
type instanceOwners struct {
	mu       sync.Mutex
	machines map[string]string // by instance
}

// What was reserved for machines that have none recorded yet stays; what dead ones have may be
// another's by now.
func (o *instanceOwners) setRecorded(recorded []Wanted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	reserved := map[string]string{}
	for instance, machine := range o.machines {
		reserved[machine] = instance
	}
	o.machines = map[string]string{}
	for _, m := range recorded {
		if m.Instance == "" {
			m.Instance = reserved[m.ID]
		}
		if m.Instance != "" && m.Life != state.Dead {
			o.machines[m.Instance] = m.ID
		}
	}
}

func (o *instanceOwners) reserve(instance, machine string) (other string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, taken := o.machines[instance]; taken && other != machine {
		return other, false
	}
	o.machines[instance] = machine
	return "", true
}

func (o *instanceOwners) isTaken(instance string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, taken := o.machines[instance]
	return taken
}
