package uniter

import (
	"maps"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// Snapshot is all that Next decides by.
type Snapshot struct {
	Now time.Time

	// Gone: the unit's record is not there any more.
	Gone bool
	Unit state.Unit
	// Uniter is what was recorded of the unit's own doings.
	Uniter state.Uniter
	// Charm is the URL of the service's charm, Upgrade its mark as far as the unit
	// runs another one, ConfigVersion the version of its configuration.
	Charm         string
	Upgrade       state.Upgrade
	ConfigVersion int64
	// Hooks are those of the unit's charm; Leader is what there is to know of the
	// service's leadership, as far as the charm has hooks for it.
	Hooks  CharmHooks
	Leader Leader
	// Relations are those of the service, by id.
	Relations map[int]Relation

	RetryHooks     bool          // failed hooks are retried by themselves
	StatusInterval time.Duration // between update-status hooks; 0: never
	LastHook       time.Time     // when this agent's last hook ended, or it began

	// Running: a hook of this agent is in flight, since Begun. Cut: it has been told to end.
	Running, Cut bool
	Begun        time.Time

	HookTimeout time.Duration // after which a hook is ended; 0: never

	// Asked is the first of what operators have asked for; nil if there is none.
	Asked *state.Action
}

// Relation is a relation of the unit's service, as the store has it now.
type Relation struct {
	hook.Relation
	Life      state.Life
	Principal string         // in container scope: whose machine the unit shares; else empty
	Members   []state.Member // those that concern the unit, by number; not itself; last the other service, for its own settings
	// Holds: it holds a subordinate's unit to its principal.
	Holds bool
}

// leaving is true if the unit is to leave the relation, or may not enter it: one
// of them goes, or the relation is gone altogether.
func (s *Snapshot) leaving(id int) bool {
	r, ok := s.Relations[id]
	return s.Unit.Life != state.Alive || !ok || r.Life != state.Alive
}

// orphaned is true for a subordinate's unit that nothing holds to its principal
// any more.
func (s *Snapshot) orphaned() bool {
	if s.Unit.Principal == "" || s.Unit.Life != state.Alive {
		return false
	}
	for _, r := range s.Relations {
		if r.Holds && r.Life == state.Alive {
			return false
		}
	}
	return true
}

// entered lists the relations that the unit is in, ascending.
func (s *Snapshot) entered() []int { return sortedKeys(s.Uniter.Relations) }

func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
