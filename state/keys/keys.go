// Package keys names every key of an environment. The comments give the form of each key and, after a colon, the
// type of its value.
//
// Keys contain the names of units unchanged, as in wordpress/0. The only other names with slashes are charm
// URLs, which are at the end of their keys. Prefixes end with a slash, so that a prefix for mysql never
// matches mysql2. The keys of blobs are in package keyspace.
// state/access/table.go lists all keys as one table, with the right that each agent has to them.
package keys

import (
	"fmt"
	"strconv"
	"strings"
)

// These are the single keys.
const (
	Format      = "format"      // FormatRecord
	Environment = "environment" // Environment
	CopyLock    = "migrating"   // CopyLockRecord, under the lock's session
	Moved       = "moved"       // MovedRecord: the environment has moved to another store
	PartialCopy = "migration"   // PartialCopy: the environment is copied from another store
	Provisioner = "provisioner" // ProvisionerTrouble
)

// The prefixes of all other keys.
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

// ProvisionerLeader is the key of the provisioners' leader; see Leader.
const ProvisionerLeader = Leaders + "provisioner"

// The keys of counters, whose values are the next number.
const (
	Counters        = "counters/"
	MachineCounter  = Counters + "machines"
	RelationCounter = Counters + "relations"
	ActionCounter   = Counters + "actions"
	StorageCounter  = Counters + "storage"
)

// UnitCounter is counters/units/<service>: the next unit's number.
func UnitCounter(service string) string { return Counters + "units/" + service }

// Presence is presence/<agent>: keyspace.Presence, the agent's process, under its session.
func Presence(agent string) string { return Presences + agent }

// Claim is claims/machine-<id>: keyspace.ClaimRecord, the right to run the machine's agents.
func Claim(agent string) string { return Claims + agent }

// Leader is leaders/<what>: keyspace.Presence, under its session.
func Leader(what string) string { return Leaders + what }

// ServiceLeaderName is the argument of Leader for the leadership of a service.
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

// ServiceRelations is the prefix of a service's short records of its relations.
func ServiceRelations(s string) string { return BelowService(s) + "relations/" }

// ServiceRelation is services/<s>/relations/<n>: the service's short record of a relation.
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

// UnitSecrets is units/<u>/secrets: record.Index, the secrets that the unit owns or reads.
func UnitSecrets(u string) string { return Unit(u) + "/secrets" }

// ServiceSecrets is services/<s>/secrets: record.Index, the secrets that the service owns or was granted.
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

// UnitRequests is the prefix of the requests of a unit's agent to the provisioner's leader.
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

// FirstUnit is first-units/<id>: the only unit that the machine has hosted.
func FirstUnit(id string) string { return "first-units/" + id }

// MachineUnits is the prefix of a machine's units.
func MachineUnits(id string) string { return Machine(id) + "/units/" }

// MachineUnit is machines/<id>/units/<u>: an index entry without a value.
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

// IsOfAgent reports whether almost all writes of the key come from the agent that runs the unit or machine.
func IsOfAgent(key string) bool {
	// Operators write most keys below a unit's own key, such as the unit's actions.
	rest, isBelowUnits := strings.CutPrefix(key, Units)
	isUnit := isBelowUnits && strings.Count(rest, "/") == 1
	return isUnit || strings.HasPrefix(key, Uniters) || strings.HasPrefix(key, LogHeads)
}

// Op is uniters/<u>/op: Op.
func Op(u string) string { return Uniter(u) + "op" }

// Workflow is uniters/<u>/workflow: Workflow.
func Workflow(u string) string { return Uniter(u) + "workflow" }

// UniterRelations is the prefix of the records that a unit's agent keeps about relations and their units.
func UniterRelations(u string) string { return Uniter(u) + "relations/" }

// UniterServices is the prefix of the records that a unit's agent keeps about services' own settings.
func UniterServices(u string) string { return Uniter(u) + "services/" }

// RelationState is uniters/<u>/relations/<n>: RelationState.
func RelationState(u string, id int) string { return UniterRelations(u) + strconv.Itoa(id) }

// memberStatesPrefix is the prefix of the records that a unit's agent keeps about units in a relation.
func memberStatesPrefix(u string, id int) string { return RelationState(u, id) + "/" }

// MemberState is uniters/<u>/relations/<n>/<member>: MemberState. The key for a service's own settings is
// uniters/<u>/services/<n>/<s>, since older binaries expect only units below memberStatesPrefix.
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

// LogHead is logs/<u>: the position of the last line in the log of a unit or machine.
func LogHead(source string) string { return LogHeads + source }

// LogBatch is log/<u>/<seq>: some lines in the log of a unit or machine.
func LogBatch(source string, seq int64) string {
	return fmt.Sprintf("%s%s/%010d", logPrefix, source, seq)
}

// GatewayLeasesOf is the prefix of the leases that a gateway has granted to an identity.
func GatewayLeasesOf(who string) string { return GatewayLeases + who + "/" }

// GatewayLease is gateway-leases/<who>/<id>. Its value is empty, and the key is bound to the lease <id>.
func GatewayLease(who string, id int64) string {
	return GatewayLeasesOf(who) + strconv.FormatInt(id, 10)
}

// CutInt parses the number after the prefix of a key. ok is false if the key does not have the prefix, or if
// the rest of the key is not a number.
func CutInt(key, prefix string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil
}
