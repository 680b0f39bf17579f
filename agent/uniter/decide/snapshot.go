package decide

import (
	"maps"
	"slices"
	"time"

	"bijou/agent/hook"
	"bijou/state"
)

// Snapshot is everything that Next decides by, and that hooks are told at their begin.
type Snapshot struct {
	Now time.Time

	Gone   bool // the unit's record does not exist any more
	Unit   state.Unit
	Uniter state.Uniter // the loop's own records

	Charm         string        // the URL of the service's charm
	Upgrade       state.Upgrade // the service's, while the unit runs another charm
	ConfigVersion int64         // of the service's configuration
	Hooks         CharmHooks    // of the unit's charm
	Leader        Leader        // zero for a charm without hooks about leadership
	Relations     map[int]Relation
	Secrets       Secrets

	RetryHooks     bool          // failed hooks are retried by themselves
	StatusInterval time.Duration // between update-status hooks; 0: never
	HookTimeout    time.Duration // after which a hook is told to end; 0: never
	LastHook       time.Time     // when this agent's last hook ended, or the agent began

	Running bool      // a hook of this agent is in flight
	Begun   time.Time // when that hook began
	Ending  bool      // that hook has been told to end

	Action *state.Action // the next action or command of an operator; nil if there is none

	Environment state.Environment
	JujuVersion string       // that the service's hooks are promised
	Debug       *state.Debug // an operator's session in which hooks are run by hand; nil if there is none
}

// Relation is a relation of the unit's service, as the store has it now.
type Relation struct {
	hook.Relation
	Life      state.Life
	Principal string         // in container scope: the unit whose machine this one shares; else empty
	Members   []state.Member // those that concern the unit, by number; not itself; last the other service, for its own settings

	ToPrincipal bool // the relation holds a subordinate's unit to its principal
}

// IsLeaving reports whether the unit is to leave the relation.
func (s *Snapshot) IsLeaving(id int) bool {
	r, ok := s.Relations[id]
	return s.Unit.Life != state.Alive || !ok || r.Life != state.Alive
}

func (s *Snapshot) isOrphaned() bool {
	if s.Unit.Principal == "" || s.Unit.Life != state.Alive {
		return false
	}
	for _, r := range s.Relations {
		if r.ToPrincipal && r.Life == state.Alive {
			return false
		}
	}
	return true
}

// AddVanished adds the relations that the unit is in and whose records are gone, as a
// forced removal leaves them: their last hooks are still owed.
func (s *Snapshot) AddVanished() {
	for id, rs := range s.Uniter.Relations {
		if _, ok := s.Relations[id]; !ok && rs.Name != "" {
			r := hook.Relation{ID: id, Name: rs.Name, RemoteService: rs.RemoteService, Peer: rs.Peer}
			s.Relations[id] = Relation{Relation: r, Life: state.Dead}
		}
	}
}

func (s *Snapshot) enteredRelations() []int { return sortedKeys(s.Uniter.Relations) }

func sortedKeys[K int | string, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }
