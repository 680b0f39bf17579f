package state

import (
	"strconv"
	"strings"
)

// entityScope is an entity's record, and what is below it.
func entityScope(key string) Scope {
	return Scope{exact: []string{key}, prefixes: []string{key + "/"}}
}

// WatchUnit is a unit's record and ports.
func WatchUnit(unit string) Scope { return entityScope(unitKey(unit)) }

// WatchUnits is every unit of a service.
func WatchUnits(service string) Scope { return Scope{prefixes: []string{serviceUnitsPrefix(service)}} }

// WatchService is a service's record, its configuration, which relations it has
// and how alive they are, and who leads it.
func WatchService(service string) Scope {
	s := entityScope(serviceKey(service))
	s.exact = append(s.exact, leaderKey(serviceLeaderName(service)))
	return s
}

// WatchMembers is which units of one service are in a relation, which version their
// settings there have, and the service's own.
func WatchMembers(id int, service string) Scope {
	return Scope{exact: []string{appSettingsKey(id, service)}, prefixes: []string{serviceMembersPrefix(id, service)}}
}

// WatchRelations is every relation, with its members and all settings in it.
func WatchRelations() Scope { return Scope{prefixes: []string{relationsPrefix}} }

// WatchMachine is a machine's record, and which units it has.
func WatchMachine(id string) Scope { return entityScope(machineKey(id)) }

// WatchMachines is every machine.
func WatchMachines() Scope { return Scope{prefixes: []string{machinesPrefix}} }

// WatchUniter is what a unit's agent is doing and has queued.
func WatchUniter(unit string) Scope { return Scope{prefixes: []string{uniterPrefix(unit)}} }

// WatchHistory is which hooks a unit has run.
func WatchHistory(unit string) Scope { return Scope{prefixes: []string{unitHistoryPrefix(unit)}} }

// WatchPresence is which agents are there.
func WatchPresence() Scope { return Scope{prefixes: []string{presencePrefix}} }

// WatchMachineAgents is which machines' agents are there, and no unit's.
func WatchMachineAgents() Scope { return Scope{prefixes: []string{presenceKey(MachineAgent(""))}} }

// WatchLogs is the logs of those units and machines (none: of all).
func WatchLogs(sources ...string) Scope {
	if len(sources) == 0 {
		return Scope{prefixes: []string{logHeadsPrefix}}
	}
	var s Scope
	for _, source := range sources {
		s.exact = append(s.exact, logHeadKey(source))
	}
	return s
}

// WatchAction is how far an action is.
func WatchAction(id int) Scope { return Scope{exact: []string{actionKey(id)}} }

// WatchAgent is whether that agent is there.
func WatchAgent(agent string) Scope { return Scope{exact: []string{presenceKey(agent)}} }

// WatchEnvironment is the environment's own record.
func WatchEnvironment() Scope { return Scope{exact: []string{environmentKey}} }

// WatchAll is everything but logs.
func WatchAll() Scope {
	return Scope{exact: []string{environmentKey, provisionerKey}, prefixes: []string{
		actionsPrefix, resourcesPrefix,
		charmsPrefix, leadersPrefix, machinesPrefix, presencePrefix, relationsPrefix, servicesPrefix, unitersPrefix, unitsPrefix,
	}}
}

// MembershipOf says whose membership it is that changed, or which service's own
// settings, if a key from WatchMembers says so.
func MembershipOf(key string) (relation int, member string, ok bool) {
	rest, ok := strings.CutPrefix(key, relationsPrefix)
	number, rest, _ := strings.Cut(rest, "/")
	kind, member, _ := strings.Cut(rest, "/")
	relation, err := strconv.Atoi(number)
	return relation, member, ok && (kind == "members" || kind == "apps") && err == nil
}

// AgentOf is the machine whose agent came or went, if a key from WatchMachineAgents
// says so.
func AgentOf(key string) (machine string, ok bool) {
	return strings.CutPrefix(key, presenceKey(MachineAgent("")))
}

// LogSource is the unit or machine whose log changed, if a key from WatchLogs
// says so.
func LogSource(key string) (source string, ok bool) {
	return strings.CutPrefix(key, logHeadsPrefix)
}
