package hookctx

import (
	"maps"
	"slices"

	"bijou/state"
)

// PortChange is a range that a hook has opened or closed.
type PortChange struct {
	Unit string
	Port state.Port
	Open bool
}

// String words the change for the log.
func (c PortChange) String() string {
	if c.Open {
		return "port opened: " + c.Port.String()
	}
	return "port closed: " + c.Port.String()
}

// PortChanges lists what the hook has opened that was closed when it looked, and
// the other way round; by unit, the closed ones first.
func (c *Context) PortChanges() (changes []PortChange) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, unit := range slices.Sorted(maps.Keys(c.ports)) {
		before := c.ports[unit].read
		after := c.ports[unit].apply(before)
		for _, p := range before {
			if !slices.Contains(after, p) {
				changes = append(changes, PortChange{unit, p, false})
			}
		}
		for _, p := range after {
			if !slices.Contains(before, p) {
				changes = append(changes, PortChange{unit, p, true})
			}
		}
	}
	return changes
}
