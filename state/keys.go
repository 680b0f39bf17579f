package state

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
	formatKey            = "format"
	environmentKey       = "environment"
	copyLockKey          = "migrating"
	movedKey             = "moved"
	partialCopyKey       = "migration"
	provisionerKey       = "provisioner"
	presencePrefix       = "presence/"
	claimsPrefix         = "claims/"
	leadersPrefix        = "leaders/"
	charmsPrefix         = "charms/"
	servicesPrefix       = "services/"
	unitsPrefix          = "units/"
	machinesPrefix       = "machines/"
	unusedMachinesPrefix = "spares/"
	relationsPrefix      = "relations/"
	unitersPrefix        = "uniters/"
	historyPrefix        = "history/"
	logHeadsPrefix       = "logs/"
	logPrefix            = "log/"
	actionsPrefix        = "actions/"
	resourcesPrefix      = "resources/"
	toolsPrefix          = "tools/"

	countersPrefix  = "counters/"
	machineCounter  = countersPrefix + "machines"
	relationCounter = countersPrefix + "relations"
	actionCounter   = countersPrefix + "actions"
)

func unitCounter(service string) string { return countersPrefix + "units/" + service }
func presenceKey(agent string) string   { return presencePrefix + agent }
func claimKey(agent string) string      { return claimsPrefix + agent }
func leaderKey(what string) string      { return leadersPrefix + what }
func serviceLeaderName(s string) string { return "services/" + s }
func charmKey(url string) string        { return charmsPrefix + url }
func toolsKey(name string) string       { return toolsPrefix + name }

func serviceKey(s string) string               { return servicesPrefix + s }
func servicePrefix(s string) string            { return servicesPrefix + s + "/" }
func configKey(s string) string                { return servicePrefix(s) + "config" }
func serviceStatusKey(s string) string         { return servicePrefix(s) + "status" }
func upgradeKey(s string) string               { return servicePrefix(s) + "upgrade" }
func leaderSettingsKey(s string) string        { return servicePrefix(s) + "leader-settings" }
func relationIndexPrefix(s string) string      { return servicePrefix(s) + "relations/" }
func relationIndexKey(s string, id int) string { return relationIndexPrefix(s) + strconv.Itoa(id) }
func unitKey(u string) string                  { return unitsPrefix + u }
func serviceUnitsPrefix(s string) string       { return unitsPrefix + s + "/" }
func portsKey(u string) string                 { return unitKey(u) + "/ports" }
func actionQueueKey(u string) string           { return unitKey(u) + "/actions" }
func actionKey(id int) string                  { return actionsPrefix + strconv.Itoa(id) }
func serviceResourcesPrefix(s string) string   { return resourcesPrefix + s + "/" }
func resourceKey(s, name string) string        { return serviceResourcesPrefix(s) + name }
func debugKey(u string) string                 { return unitKey(u) + "/debug" }
func unitStateKey(u string) string             { return unitKey(u) + "/state" }
func restoredKey(u string) string              { return unitKey(u) + "/restored" }
func machineKey(id string) string              { return machinesPrefix + id }
func unusedMachineKey(id string) string        { return unusedMachinesPrefix + id }
func firstUnitKey(id string) string            { return "first-units/" + id }
func machineUnitsPrefix(id string) string      { return machineKey(id) + "/units/" }
func machineUnitKey(id, u string) string       { return machineUnitsPrefix(id) + u }

func relationKey(id int) string                          { return relationsPrefix + strconv.Itoa(id) }
func membersPrefix(id int) string                        { return relationKey(id) + "/members/" }
func memberKey(id int, u string) string                  { return membersPrefix(id) + u }
func serviceMembersPrefix(id int, service string) string { return membersPrefix(id) + service + "/" }
func settingsPrefix(id int) string                       { return relationKey(id) + "/settings/" }
func settingsKey(id int, u string) string                { return settingsPrefix(id) + u }
func appsPrefix(id int) string                           { return relationKey(id) + "/apps/" }
func appSettingsKey(id int, s string) string             { return appsPrefix(id) + s }

func uniterPrefix(u string) string               { return unitersPrefix + u + "/" }
func opKey(u string) string                      { return uniterPrefix(u) + "op" }
func workflowKey(u string) string                { return uniterPrefix(u) + "workflow" }
func relationStatesPrefix(u string) string       { return uniterPrefix(u) + "relations/" }
func relationStateKey(u string, id int) string   { return relationStatesPrefix(u) + strconv.Itoa(id) }
func memberStatesPrefix(u string, id int) string { return relationStateKey(u, id) + "/" }
func serviceStatesPrefix(u string) string        { return uniterPrefix(u) + "services/" }

// memberStateKey is apart for a service, whose own settings the unit is told of: binaries
// that do not know of those take everything below memberStatesPrefix for units.
func memberStateKey(u string, id int, m string) string {
	if !strings.Contains(m, "/") {
		return serviceStatesPrefix(u) + strconv.Itoa(id) + "/" + m
	}
	return memberStatesPrefix(u, id) + m
}

func unitHistoryPrefix(unit string) string    { return historyPrefix + unit + "/" }
func historyKey(unit string, slot int) string { return unitHistoryPrefix(unit) + strconv.Itoa(slot) }

func logHeadKey(source string) string       { return logHeadsPrefix + source }
func logBatchesPrefix(source string) string { return logPrefix + source + "/" }
func logKey(source string, seq int64) string {
	return fmt.Sprintf("%s%010d", logBatchesPrefix(source), seq)
}

// cutInt parses a key's last part; ok is false if more follows the prefix.
func cutInt(key, prefix string) (n int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(rest)
	return n, err == nil
}
