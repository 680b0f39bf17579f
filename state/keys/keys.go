// Package keys names every key of an environment, with what it holds, and nothing else.
//
// A unit's name stands in keys as it is ("wordpress/0"); no other name has a slash, but
// charm URLs, which end their key. Prefixes end with a slash, so that mysql never means
// mysql2. The keys of blobs are those of keyspace.
package keys

import (
	"fmt"
	"strconv"
	"strings"
)

// The keys of which there is one.
const (
	Format      = "format"      // what wrote this store
	Environment = "environment" // Environment
	CopyLock    = "migrating"   // CopyLockRecord, under the lock's session
	Moved       = "moved"       // MovedRecord: the environment is in another store
	PartialCopy = "migration"   // PartialCopy: the environment comes from another
	Provisioner = "provisioner" // ProvisionerTrouble
)

// The first words of all others.
const (
	Presences      = "presence/"
	Claims         = "claims/"
	Leaders        = "leaders/"
	Charms         = "charms/"
	Services       = "services/"
	Units          = "units/"
	Machines       = "machines/"
	UnusedMachines = "spares/"
	Relations      = "relations/"
	Uniters        = "uniters/"
	History        = "history/"
	LogHeads       = "logs/"
	logPrefix      = "log/"
	Actions        = "actions/"
	Resources      = "resources/"
	Tools          = "tools/"
	Secrets        = "secrets/"
	SecretContents = "secret-contents/"
	SecretKeys     = "secret-keys/"
	Storages       = "storage/"
	Requests       = "requests/"
	GatewayLeases  = "gateway-leases/"
)

// ProvisionerLeader is the Leader of the provisioners.
const ProvisionerLeader = Leaders + "provisioner"

// The counters, each of which holds the next number.
const (
	Counters        = "counters/"
	MachineCounter  = Counters + "machines"
	RelationCounter = Counters + "relations"
	ActionCounter   = Counters + "actions"
	StorageCounter  = Counters + "storage"
)

// UnitCounter is counters/units/<service>: the next unit's number.
func UnitCounter(service string) string { return Counters + "units/" + service }

// Presence is presence/<agent>: the process that an agent runs in, under its session.
func Presence(agent string) string { return Presences + agent }

// Claim is claims/machine-<id>: keyspace.ClaimRecord, who runs the machine's agents.
func Claim(agent string) string { return Claims + agent }

// Leader is leaders/<what>: keyspace.Presence, under its session.
func Leader(what string) string { return Leaders + what }

// ServiceLeaderName names the leadership of a service: Leader has its key.
func ServiceLeaderName(s string) string { return "services/" + s }

// Charm is charms/<url>: Charm.
func Charm(url string) string { return Charms + url }

// Tool is tools/<name>: Tools.
func Tool(name string) string { return Tools + name }

// Service is services/<s>: Service.
func Service(s string) string { return Services + s }

// BelowService is the prefix of all keys that belong to a service.
func BelowService(s string) string { return Services + s + "/" }

// Config is services/<s>/config: Config.
func Config(s string) string { return BelowService(s) + "config" }

// ServiceStatus is services/<s>/status: WorkloadStatus.
func ServiceStatus(s string) string { return BelowService(s) + "status" }

// Upgrade is services/<s>/upgrade: Upgrade.
func Upgrade(s string) string { return BelowService(s) + "upgrade" }

// LeaderSettings is services/<s>/leader-settings: a settings node.
func LeaderSettings(s string) string { return BelowService(s) + "leader-settings" }

// ServiceRelations is the prefix of a service's parts in relations.
func ServiceRelations(s string) string { return BelowService(s) + "relations/" }

// ServiceRelation is services/<s>/relations/<n>: the service's part in a relation.
func ServiceRelation(s string, id int) string { return ServiceRelations(s) + strconv.Itoa(id) }

// Unit is units/<u>: Unit.
func Unit(u string) string { return Units + u }

// ServiceUnits is the prefix of a service's units.
func ServiceUnits(s string) string { return Units + s + "/" }

// BelowUnit is the prefix of all keys that belong to a unit.
func BelowUnit(u string) string { return Unit(u) + "/" }

// Ports is units/<u>/ports: []Port.
func Ports(u string) string { return Unit(u) + "/ports" }

// ActionQueue is units/<u>/actions: the actions that wait for the unit.
func ActionQueue(u string) string { return Unit(u) + "/actions" }

// Action is actions/<id>: Action.
func Action(id int) string { return Actions + strconv.Itoa(id) }

// ServiceResources is the prefix of a service's resources.
func ServiceResources(s string) string { return Resources + s + "/" }

// Resource is resources/<s>/<name>: Resource.
func Resource(s, name string) string { return ServiceResources(s) + name }

// Debug is units/<u>/debug: Debug.
func Debug(u string) string { return Unit(u) + "/debug" }

// UnitSecrets is units/<u>/secrets: secrets.Index, those that the unit has or reads.
func UnitSecrets(u string) string { return Unit(u) + "/secrets" }

// ServiceSecrets is services/<s>/secrets: secrets.Index, those that the service has or was granted.
func ServiceSecrets(s string) string { return BelowService(s) + "secrets" }

// Secret is secrets/<id>: secret.Record.
func Secret(id string) string { return Secrets + id }

// ContentsOfSecret is the prefix of a secret's contents.
func ContentsOfSecret(id string) string { return SecretContents + id + "/" }

// SecretContent is secret-contents/<id>/<revision>: secret.Sealed.
func SecretContent(id string, revision int) string {
	return ContentsOfSecret(id) + strconv.Itoa(revision)
}

// Storage is storage/<name>/<n>: Storage.
func Storage(id string) string { return Storages + id }

// UnitStorage is units/<u>/storage: the ids of the unit's storages.
func UnitStorage(u string) string { return Unit(u) + "/storage" }

// MachineStorage is machines/<id>/storage: MachineStorage.
func MachineStorage(id string) string { return Machine(id) + "/storage" }

// UnitRequests is the prefix of what a unit's agent requests of the provisioner's leader.
func UnitRequests(u string) string { return Requests + u + "/" }

// Request is requests/<u>/<what>: Request.
func Request(u, what string) string { return UnitRequests(u) + what }

// UnitState is units/<u>/state: a settings node.
func UnitState(u string) string { return Unit(u) + "/state" }

// Restored is units/<u>/restored: Restored.
func Restored(u string) string { return Unit(u) + "/restored" }

// Machine is machines/<id>: Machine.
func Machine(id string) string { return Machines + id }

// UnusedMachine is spares/<id>: a machine that no unit needs.
func UnusedMachine(id string) string { return UnusedMachines + id }

// FirstUnit is first-units/<id>: the unit that a machine was made for.
func FirstUnit(id string) string { return "first-units/" + id }

// MachineUnits is the prefix of a machine's units.
func MachineUnits(id string) string { return Machine(id) + "/units/" }

// MachineUnit is machines/<id>/units/<u>: an index, empty.
func MachineUnit(id, u string) string { return MachineUnits(id) + u }

// Relation is relations/<n>: Relation.
func Relation(id int) string { return Relations + strconv.Itoa(id) }

// Members is the prefix of a relation's members.
func Members(id int) string { return Relation(id) + "/members/" }

// Member is relations/<n>/members/<u>: Member.
func Member(id int, u string) string { return Members(id) + u }

// ServiceMembers is the prefix of a service's members of a relation.
func ServiceMembers(id int, service string) string { return Members(id) + service + "/" }

// RelationSettings is the prefix of the units' settings in a relation.
func RelationSettings(id int) string { return Relation(id) + "/settings/" }

// Settings is relations/<n>/settings/<u>: a settings node.
func Settings(id int, u string) string { return RelationSettings(id) + u }

// Apps is the prefix of the services' own settings in a relation.
func Apps(id int) string { return Relation(id) + "/apps/" }

// AppSettings is relations/<n>/apps/<s>: a settings node.
func AppSettings(id int, s string) string { return Apps(id) + s }

// ServiceUniters is the prefix of the records of all agents of a service's units.
func ServiceUniters(s string) string { return Uniters + s + "/" }

// Uniter is the prefix of the records of a unit's agent.
func Uniter(u string) string { return Uniters + u + "/" }

// IsOfAgent reports whether hardly anybody but the agent that runs a unit or machine writes the key.
func IsOfAgent(key string) bool {
	unit, isBelowUnits := strings.CutPrefix(key, Units) // where operators write actions, and more
	return strings.HasPrefix(key, Uniters) || isBelowUnits && strings.Count(unit, "/") == 1 ||
		strings.HasPrefix(key, LogHeads)
}

// Op is uniters/<u>/op: Op.
func Op(u string) string { return Uniter(u) + "op" }

// Workflow is uniters/<u>/workflow: Workflow.
func Workflow(u string) string { return Uniter(u) + "workflow" }

// UniterRelations is the prefix of what a unit's agent keeps of relations and their units.
func UniterRelations(u string) string { return Uniter(u) + "relations/" }

// UniterServices is the prefix of what a unit's agent keeps of services' own settings.
func UniterServices(u string) string { return Uniter(u) + "services/" }

// RelationState is uniters/<u>/relations/<n>: RelationState.
func RelationState(u string, id int) string      { return UniterRelations(u) + strconv.Itoa(id) }
func memberStatesPrefix(u string, id int) string { return RelationState(u, id) + "/" }

// MemberState is uniters/<u>/relations/<n>/<member>: MemberState. A service, whose own settings the unit is
// told of, has its key elsewhere: older binaries take all keys below memberStatesPrefix for units.
func MemberState(u string, id int, m string) string {
	if !strings.Contains(m, "/") {
		return UniterServices(u) + strconv.Itoa(id) + "/" + m
	}
	return memberStatesPrefix(u, id) + m
}

// UnitHistory is the prefix of the hooks that a unit has run.
func UnitHistory(unit string) string { return History + unit + "/" }

// HookRun is history/<u>/<slot>: HookRun.
func HookRun(unit string, slot int) string { return UnitHistory(unit) + strconv.Itoa(slot) }

// LogHead is logs/<u>: how far the log of a unit or machine is.
func LogHead(source string) string { return LogHeads + source }

// LogBatch is log/<u>/<seq>: lines of it.
func LogBatch(source string, seq int64) string {
	return fmt.Sprintf("%s%s/%010d", logPrefix, source, seq)
}

// GatewayLeasesOf is the prefix of the leases that an identity has by a gateway.
func GatewayLeasesOf(who string) string { return GatewayLeases + who + "/" }

// GatewayLease is gateway-leases/<who>/<id>: empty, under the lease itself.
func GatewayLease(who string, id int64) string {
	return GatewayLeasesOf(who) + strconv.FormatInt(id, 10)
}

// CutInt parses a key's last part; ok is false if more follows the prefix.
func CutInt(key, prefix string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil
}
