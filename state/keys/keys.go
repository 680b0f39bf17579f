package keys

import (
	"fmt"
	"strconv"
	"strings"
)

// Every key of an environment, in one table. A unit's name stands in keys as it
// is ("wordpress/0"); no other name has a slash, but charm URLs, which end their
// key. Lists end their prefix with a slash, so that mysql never means mysql2.
//
//	format                              what wrote this store
//	environment                         Environment
//	migrating                           copyLockRecord, under the lock's lease
//	moved                               movedRecord: the environment is in another store
//	migration                           partialCopy: the environment comes from another
//	counters/machines                   the next machine's id
//	counters/relations                  the next relation's
//	counters/actions                    the next action's
//	counters/units/<service>            the next unit's number
//	provisioner                         ProvisionerTrouble
//	presence/<agent>                    presence, under the session's lease
//	claims/machine-<id>                 keyspace.ClaimRecord: who runs the machine's agents
//	leaders/<what>                      presence, under the session's lease
//	leaders/services/<s>                presence of a process, with the unit that leads
//	charms/<url>                        Charm
//	blobs/<sha256>/<n>                  one chunk
//	blob-heads/<sha256>                 keyspace.BlobHead
//	services/<s>                        Service
//	services/<s>/config                 Config
//	services/<s>/status                 WorkloadStatus
//	services/<s>/leader-settings        settingsDoc
//	services/<s>/upgrade                Upgrade
//	services/<s>/relations/<n>          relationIndex
//	units/<u>                           Unit
//	units/<u>/ports                     []Port
//	units/<u>/state                     settingsDoc
//	units/<u>/debug                     Debug
//	units/<u>/restored                  Restored
//	units/<u>/actions                   actionQueue
//	actions/<id>                        Action
//	resources/<s>/<name>                Resource
//	tools/<name>                        Tools
//	machines/<id>                       Machine
//	machines/<id>/units/<u>             index: empty
//	spares/<id>                         unusedMachine
//	first-units/<id>                    firstUnit
//	relations/<n>                       Relation
//	relations/<n>/members/<u>           Member
//	relations/<n>/settings/<u>          settingsDoc
//	relations/<n>/apps/<s>              settingsDoc
//	uniters/<u>/op                      Op
//	uniters/<u>/workflow                Workflow
//	uniters/<u>/relations/<n>           RelationState
//	uniters/<u>/relations/<n>/<member>  MemberState
//	history/<u>/<slot>                  HookRun
//	logs/<u>                            logHead
//	log/<u>/<seq>                       logBatch

const (
	Format         = "format"
	Environment    = "environment"
	CopyLock       = "migrating"
	Moved          = "moved"
	PartialCopy    = "migration"
	Provisioner    = "provisioner"
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
	historyPrefix  = "history/"
	LogHeads       = "logs/"
	logPrefix      = "log/"
	Actions        = "actions/"
	Resources      = "resources/"
	Tools          = "tools/"

	Counters        = "counters/"
	MachineCounter  = Counters + "machines"
	RelationCounter = Counters + "relations"
	ActionCounter   = Counters + "actions"
)

func UnitCounter(service string) string { return Counters + "units/" + service }
func Presence(agent string) string      { return Presences + agent }
func Claim(agent string) string         { return Claims + agent }
func Leader(what string) string         { return Leaders + what }
func ServiceLeaderName(s string) string { return "services/" + s }
func Charm(url string) string           { return Charms + url }
func Tool(name string) string           { return Tools + name }

func Service(s string) string                 { return Services + s }
func BelowService(s string) string            { return Services + s + "/" }
func Config(s string) string                  { return BelowService(s) + "config" }
func ServiceStatus(s string) string           { return BelowService(s) + "status" }
func Upgrade(s string) string                 { return BelowService(s) + "upgrade" }
func LeaderSettings(s string) string          { return BelowService(s) + "leader-settings" }
func ServiceRelations(s string) string        { return BelowService(s) + "relations/" }
func ServiceRelation(s string, id int) string { return ServiceRelations(s) + strconv.Itoa(id) }
func Unit(u string) string                    { return Units + u }
func ServiceUnits(s string) string            { return Units + s + "/" }
func Ports(u string) string                   { return Unit(u) + "/ports" }
func ActionQueue(u string) string             { return Unit(u) + "/actions" }
func Action(id int) string                    { return Actions + strconv.Itoa(id) }
func ServiceResources(s string) string        { return Resources + s + "/" }
func Resource(s, name string) string          { return ServiceResources(s) + name }
func Debug(u string) string                   { return Unit(u) + "/debug" }
func UnitState(u string) string               { return Unit(u) + "/state" }
func Restored(u string) string                { return Unit(u) + "/restored" }
func Machine(id string) string                { return Machines + id }
func UnusedMachine(id string) string          { return UnusedMachines + id }
func FirstUnit(id string) string              { return "first-units/" + id }
func MachineUnits(id string) string           { return Machine(id) + "/units/" }
func MachineUnit(id, u string) string         { return MachineUnits(id) + u }

func Relation(id int) string                       { return Relations + strconv.Itoa(id) }
func Members(id int) string                        { return Relation(id) + "/members/" }
func Member(id int, u string) string               { return Members(id) + u }
func ServiceMembers(id int, service string) string { return Members(id) + service + "/" }
func RelationSettings(id int) string               { return Relation(id) + "/settings/" }
func Settings(id int, u string) string             { return RelationSettings(id) + u }
func Apps(id int) string                           { return Relation(id) + "/apps/" }
func AppSettings(id int, s string) string          { return Apps(id) + s }

func Uniter(u string) string                     { return Uniters + u + "/" }
func Op(u string) string                         { return Uniter(u) + "op" }
func Workflow(u string) string                   { return Uniter(u) + "workflow" }
func relationStatesPrefix(u string) string       { return Uniter(u) + "relations/" }
func RelationState(u string, id int) string      { return relationStatesPrefix(u) + strconv.Itoa(id) }
func memberStatesPrefix(u string, id int) string { return RelationState(u, id) + "/" }
func serviceStatesPrefix(u string) string        { return Uniter(u) + "services/" }

// memberStateKey is apart for a service, whose own settings the unit is told of: binaries
// that do not know of those take everything below memberStatesPrefix for units.
func MemberState(u string, id int, m string) string {
	if !strings.Contains(m, "/") {
		return serviceStatesPrefix(u) + strconv.Itoa(id) + "/" + m
	}
	return memberStatesPrefix(u, id) + m
}

func UnitHistory(unit string) string       { return historyPrefix + unit + "/" }
func HookRun(unit string, slot int) string { return UnitHistory(unit) + strconv.Itoa(slot) }

func LogHead(source string) string          { return LogHeads + source }
func logBatchesPrefix(source string) string { return logPrefix + source + "/" }
func LogBatch(source string, seq int64) string {
	return fmt.Sprintf("%s%010d", logBatchesPrefix(source), seq)
}

// cutInt parses a key's last part; ok is false if more follows the prefix.
func CutInt(key, prefix string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil
}
