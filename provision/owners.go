package provision

import "sync"

// owners is which machine has which instance, as recorded or about to be. Its
// methods may be called from several goroutines.
type owners struct {
	mu       sync.Mutex
	machines map[string]string // by instance
}

// learn takes up what is recorded. What was claimed for machines that have none
// recorded yet stays; what dead ones have may be another's by now.
func (o *owners) learn(recorded []Wanted) {
	o.mu.Lock()
	defer o.mu.Unlock()
	claimed := map[string]string{}
	for instance, machine := range o.machines {
		claimed[machine] = instance
	}
	o.machines = map[string]string{}
	for _, m := range recorded {
		if m.Instance == "" {
			m.Instance = claimed[m.ID]
		}
		if m.Instance != "" && m.Life != Dead {
			o.machines[m.Instance] = m.ID
		}
	}
}

// claim makes the instance the machine's, unless it is another's already.
func (o *owners) claim(instance, machine string) (other string, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if other, taken := o.machines[instance]; taken && other != machine {
		return other, false
	}
	o.machines[instance] = machine
	return "", true
}

// taken says if an instance is that of a machine that is not dead.
func (o *owners) taken(instance string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, taken := o.machines[instance]
	return taken
}
