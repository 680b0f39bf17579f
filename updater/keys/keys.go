// Package keys defines the names of all keys of the updater, relative to their common prefix, and documents
// their values. A type name in a comment is a type of updater/record.
//
// The names are fixed, since operators and other programs use them. Prefixes end with a slash, so that the
// prefix of server 1 does not match server 10.
package keys

import (
	"fmt"
	"strconv"
)

// DefaultPrefix is the common prefix of the keys, unless an operator chooses a different one.
const DefaultPrefix = "/neco/"

// Format holds the format number that `neco init` writes and all programs check.
const Format = "format"

// These keys hold facts that the updater has found, and operators' requests.
const (
	Infos       = "info/"
	BootServers = Infos + "bootservers/" // the registered boot servers
	Release     = Infos + "release"      // the newest acceptable version
	Published   = Infos + "published"    // Published: the digests of the release that servers would install
	Target      = Infos + "target"       // Target: the version that an operator requested
	Pause       = Infos + "pause"        // Pause: keeps updates from starting
	// Recovery: an operator has recovered from a stopped update, and a new update must begin.
	Recovery = Infos + "recovery"
	Check    = Infos + "check" // a write to the key makes the leader check for releases at once
	// CheckFailure: why the last check for releases failed. The key is absent if the check succeeded.
	CheckFailure = Infos + "check-failure"
	// Refusals: releases that cannot be installed, and the reasons. The key is absent if there are no such
	// releases.
	Refused = Infos + "refused"
	// Needs: the sizes of the files of the release that servers would install.
	Needs = Infos + "needs"
	// Withdrawn: the installed release is newer than all published ones.
	Withdrawn = Infos + "withdrawn"
	// NoRoom: the release for which servers do not have enough free space, once an alert has reported this.
	NoRoom = Infos + "no-room"
	// Degraded: the changes on servers since the last update, as recorded by the leader.
	Degraded = Infos + "degraded"
	// Hurry is the name of the operator who has requested that the next update begins even if the window is
	// closed. The start of an update removes the key.
	Hurry  = Infos + "hurry"
	Repair = Infos + "repair" // Repair: an operator's request for a repair
	// HandOver: the time when a leader last gave up its lead without dying.
	HandedOver = Infos + "handed-over"
)

// The keys of the running update.
const (
	Statuses = "status/"
	Current  = Statuses + "current"     // Request: the running or last update
	Gate     = Statuses + "gate"        // Gate: the last step that its workers can run
	Workers  = Statuses + "bootserver/" // the workers' records
)

// The prefixes of all other keys.
const (
	AllContents = "contents/"    // the results of steps that one server runs on behalf of all
	AllConfig   = "config/"      // the configuration
	Turns       = "leader/turn/" // the rolling components' turns
	AllHistory  = "history/"     // all updates
	Audits      = "audit/"       // the actions of operators
	Outbox      = "outbox/"      // the alerts that have not been sent yet
	Presences   = "presence/"    // the live workers
	Inventories = "inventory/"   // the state of servers
	Claims      = "claims/"      // which host works under which LRN
	Activities  = "activity/"    // what the workers are doing
	Twins       = "twins/"       // hosts that use the LRN of another host
)

// UpdaterLeader is the key for which updaters campaign. It names the leader.
const UpdaterLeader = "leader/updater/current"

// AuditCounter holds the number of the last Audit.
const AuditCounter = "counters/audit"

// BootServer is info/bootservers/<LRN>. Its value `{}` marks a registered server.
func BootServer(lrn int) string { return BootServers + strconv.Itoa(lrn) }

// Worker is status/bootserver/<LRN>. It holds a Status, the progress of the server's worker.
func Worker(lrn int) string { return Workers + strconv.Itoa(lrn) }

// Contents is contents/<name>. It holds a Contents, the result of a step that one server runs on behalf of
// all.
func Contents(name string) string { return AllContents + name }

// Config is config/<key>. It holds the value of one configuration key, as a JSON string.
func Config(key string) string { return AllConfig + key }

// WorkerLeader is the key for which workers campaign. The winner runs the component's contents on behalf of
// all.
func WorkerLeader(component string) string { return "leader/worker/" + component }

// Turn is leader/turn/<component>. It holds a Turn, which names the server that has the turn at the component.
func Turn(component string) string { return Turns + component }

// History is history/<n>. It holds a History, the n-th update, from 1. Numbers have ten digits so that keys
// sort in numeric order.
func History(n int) string { return fmt.Sprintf("%s%010d", AllHistory, n) }

// Audit is audit/<n>. It holds an Audit, the n-th action of an operator, from 1.
func Audit(n int) string { return fmt.Sprintf("%s%010d", Audits, n) }

// Alert is outbox/<id>. It holds an Alert that has not been sent yet.
func Alert(id string) string { return Outbox + id }

// Presence is presence/<LRN>. It holds a Presence, under a lease that lasts while the server's worker runs.
func Presence(lrn int) string { return Presences + strconv.Itoa(lrn) }

// Inventory is inventory/<LRN>. It holds an Inventory, with the differences of the server's components from
// the plan, and the free space.
func Inventory(lrn int) string { return Inventories + strconv.Itoa(lrn) }

// Claim is claims/<LRN>. It holds a keyspace.ClaimRecord, which names the host and the process that work as
// that server, or were the last to do so.
func Claim(lrn int) string { return Claims + strconv.Itoa(lrn) }

// Activity is activity/<LRN>. It holds an Activity, with the current work or wait of the server's worker.
func Activity(lrn int) string { return Activities + strconv.Itoa(lrn) }

// Twin is twins/<LRN>. It holds a Twin, a host that has the server's LRN while another host works as that
// server.
func Twin(lrn int) string { return Twins + strconv.Itoa(lrn) }
