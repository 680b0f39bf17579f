package state

import "cmp"

// Harvest selects the instances that the provisioner stops: the values of HarvestMode.
// The machine of an instance is gone if it is dead, or was removed: ids are never used
// again. An instance is unknown if it names no machine that ever was, or one that has
// another instance. Instances of other environments are never touched.
type Harvest string

// The modes. Where instances of dead machines are not stopped, the machines are
// removed nonetheless, and their instances are the operator's from then on; a mode
// that stops them, set later, finds them still.
const (
	HarvestDestroyed Harvest = "destroyed" // of machines that are gone; the default
	HarvestUnknown   Harvest = "unknown"   // those that nobody knows
	HarvestAll       Harvest = "all"       // both
	HarvestNone      Harvest = "none"      // none
)

func harvestModes() []string {
	return []string{string(HarvestDestroyed), string(HarvestUnknown), string(HarvestAll), string(HarvestNone)}
}

// StopsGone reports whether instances of machines that are gone are stopped.
func (h Harvest) StopsGone() bool { return h == HarvestDestroyed || h == HarvestAll }

// StopsUnknown reports whether unknown instances are stopped.
func (h Harvest) StopsUnknown() bool { return h == HarvestUnknown || h == HarvestAll }

// Harvest returns which instances the provisioner stops.
func (e Environment) Harvest() Harvest {
	return Harvest(cmp.Or(e.Config[HarvestMode], string(HarvestDestroyed)))
}
