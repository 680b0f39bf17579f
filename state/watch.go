package state

import (
	"path"
	"strconv"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// entityScope is an entity's record, and what is below it.
func entityScope(key string) Scope {
	return Scope{Keys: []string{key}, Prefixes: []string{key + "/"}}
}

// WatchUnit covers a unit's record and ports.
func WatchUnit(unit string) Scope { return entityScope(keys.Unit(unit)) }

// WatchService covers a service's record, its configuration, its relations and their
// lives, and its leader.
func WatchService(service string) Scope {
	s := entityScope(keys.Service(service))
	s.Keys = append(s.Keys, keys.Leader(keys.ServiceLeaderName(service)))
	return s
}

// WatchMembers covers the units of one service in a relation, the versions of their
// settings there, and the service's own settings.
func WatchMembers(id int, service string) Scope {
	return Scope{Keys: []string{keys.AppSettings(id, service)}, Prefixes: []string{keys.ServiceMembers(id, service)}}
}

// WatchRelations covers every relation, with its members and all settings in it.
func WatchRelations() Scope { return keyspace.Below(keys.Relations) }

// WatchMachine covers a machine's record, and its units.
func WatchMachine(id string) Scope { return entityScope(keys.Machine(id)) }

// WatchMachines covers every machine.
func WatchMachines() Scope { return keyspace.Below(keys.Machines) }

// WatchUniter covers the records of a unit's agent.
func WatchUniter(unit string) Scope { return keyspace.Below(keys.Uniter(unit)) }

// WatchHistory covers the hooks that a unit has run.
func WatchHistory(unit string) Scope { return keyspace.Below(keys.UnitHistory(unit)) }

// WatchHistories covers the hooks that all units have run.
func WatchHistories() Scope { return keyspace.Below(keys.History) }

// WatchPresence covers the presence of all agents.
func WatchPresence() Scope { return keyspace.Below(keys.Presences) }

// WatchMachineAgents covers the presence of machines' agents, and no unit's.
func WatchMachineAgents() Scope { return keyspace.Below(keys.Presence(MachineAgent(""))) }

// WatchLogs covers the logs of those units and machines (none: of all).
func WatchLogs(sources ...string) Scope {
	if len(sources) == 0 {
		return keyspace.Below(keys.LogHeads)
	}
	var s Scope
	for _, source := range sources {
		s.Keys = append(s.Keys, keys.LogHead(source))
	}
	return s
}

// WatchAction covers an action.
func WatchAction(id int) Scope { return Scope{Keys: []string{keys.Action(id)}} }

// WatchEnvironment covers the environment's own record.
func WatchEnvironment() Scope { return Scope{Keys: []string{keys.Environment}} }

// WatchAll covers everything but logs.
func WatchAll() Scope {
	return Scope{Keys: []string{keys.Environment, keys.Provisioner}, Prefixes: []string{
		keys.Actions, keys.Resources,
		keys.Charms, keys.Leaders, keys.Machines, keys.Presences, keys.Relations, keys.Services, keys.Uniters, keys.Units,
	}}
}

// MembershipOf parses a key from WatchMembers: the relation, and the unit whose
// membership changed, or the service whose own settings did.
func MembershipOf(key string) (relation int, member string, ok bool) {
	rest, ok := strings.CutPrefix(key, keys.Relations)
	number, rest, _ := strings.Cut(rest, "/")
	kind, member, _ := strings.Cut(rest, "/")
	relation, err := strconv.Atoi(number)
	return relation, member, ok && (kind == "members" || kind == "apps") && err == nil
}

// HistoryOf parses a key from WatchHistories: the unit that has run a hook.
func HistoryOf(key string) (unit string, ok bool) {
	rest, ok := strings.CutPrefix(key, keys.History)
	return path.Dir(rest), ok
}

// AgentOf parses a key from WatchMachineAgents: the machine whose agent came or went.
func AgentOf(key string) (machine string, ok bool) {
	return strings.CutPrefix(key, keys.Presence(MachineAgent("")))
}

type (
	// Scope is a part of the environment that can be watched.
	Scope = keyspace.Scope
	// Watcher delivers which keys of its scopes changed.
	Watcher = keyspace.Watcher
	// Feed turns what watchers deliver into a channel.
	Feed = keyspace.Feed
	// KeyChange is the change of one key by a commit.
	KeyChange = keyspace.Change
)

// NewFeed returns an empty feed.
func NewFeed() *Feed { return keyspace.NewFeed() }
