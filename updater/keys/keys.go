// Package keys names every key of the updater, relative to where they lie, with what it
// holds. Types are those of updater/record.
//
// The names are fixed: operators and other programs know them. Prefixes end with a slash, so that
// server 1 never means 10. It imports nothing of bijou; every part of the updater may import it.
package keys

import (
	"fmt"
	"strconv"
)

// DefaultPrefix is where the keys lie unless an operator says otherwise.
const DefaultPrefix = "/neco/"

// Format holds the format number that `neco init` writes and everybody checks.
const Format = "format"

// What is known and wished for.
const (
	Infos       = "info/"
	BootServers = Infos + "bootservers/" // the registered boot servers
	Release     = Infos + "release"      // the newest acceptable version
	Published   = Infos + "published"    // Published: the digests of the release that servers would take
	Target      = Infos + "target"       // Target: the version that an operator asked for
	Pause       = Infos + "pause"        // Pause: keeps updates from starting
	// Recovery: an operator has recovered, and the update is to be made again.
	Recovery = Infos + "recovery"
	Check    = Infos + "check" // touched to have releases looked for at once
	// CheckFailure: why releases could not be looked for; absent if they could.
	CheckFailure = Infos + "check-failure"
	// Refusals: releases that cannot be installed, and why; absent if there are none.
	Refused = Infos + "refused"
	Needs   = Infos + "needs" // Needs: how many bytes the release that servers would take needs
	// Withdrawn: servers have a release that is newer than all that are published.
	Withdrawn = Infos + "withdrawn"
	// NoRoom: the release for which servers have no room, once that was reported.
	NoRoom = Infos + "no-room"
	// Degraded: what is not as the last update left it, as the leader sees it.
	Degraded = Infos + "degraded"
	// Who wants the next update to begin outside of the window; its start removes it.
	Hurry  = Infos + "hurry"
	Repair = Infos + "repair" // Repair: an operator's wish for a repair
	// HandedOver: the last leader that made way for another one.
	HandedOver = Infos + "handed-over"
)

// The update that runs.
const (
	Statuses = "status/"
	Current  = Statuses + "current"     // Request: the update that runs or ran last
	Gate     = Statuses + "gate"        // Gate: how far its workers may go
	Workers  = Statuses + "bootserver/" // the workers' records
)

// The first words of all others.
const (
	AllContents = "contents/"    // the results of what one server does for all
	AllConfig   = "config/"      // the configuration
	Turns       = "leader/turn/" // the rolling components' turns
	AllHistory  = "history/"     // the updates that there were
	Audits      = "audit/"       // what operators did
	Outbox      = "outbox/"      // alerts that are not sent yet
	Presences   = "presence/"    // the workers that live
	Inventories = "inventory/"   // what servers have
	Claims      = "claims/"      // who may work as a server
	Activities  = "activity/"    // what the workers are doing
	Twins       = "twins/"       // hosts that go by the LRN of another one
)

// UpdaterLeader is where updaters campaign; it names the leader.
const UpdaterLeader = "leader/updater/current"

// AuditCounter holds the number of the last Audit.
const AuditCounter = "counters/audit"

// BootServer is info/bootservers/<LRN>: `{}`, a registered server.
func BootServer(lrn int) string { return BootServers + strconv.Itoa(lrn) }

// Worker is status/bootserver/<LRN>: Status, how far the server's worker is.
func Worker(lrn int) string { return Workers + strconv.Itoa(lrn) }

// Contents is contents/<name>: Contents, the result of the work that one server does for all.
func Contents(name string) string { return AllContents + name }

// Config is config/<key>: a JSON string, the value of one configuration key.
func Config(key string) string { return AllConfig + key }

// WorkerLeader is where workers campaign to do a component's contents for all.
func WorkerLeader(component string) string { return "leader/worker/" + component }

// Turn is leader/turn/<component>: Turn, whose turn it is at a rolling component.
func Turn(component string) string { return Turns + component }

// History is history/<n>: History, the n-th update, from 1. Numbers have ten digits so that
// they sort.
func History(n int) string { return fmt.Sprintf("%s%010d", AllHistory, n) }

// Audit is audit/<n>: Audit, the n-th action of an operator, from 1.
func Audit(n int) string { return fmt.Sprintf("%s%010d", Audits, n) }

// Alert is outbox/<id>: Alert, one that is not sent yet.
func Alert(id string) string { return Outbox + id }

// Presence is presence/<LRN>: Presence, under a lease while the server's worker lives.
func Presence(lrn int) string { return Presences + strconv.Itoa(lrn) }

// Inventory is inventory/<LRN>: Inventory, how the server's components differ from the plan, and how much
// room there is.
func Inventory(lrn int) string { return Inventories + strconv.Itoa(lrn) }

// Claim is claims/<LRN>: keyspace.ClaimRecord, which host and process may work as that
// server, and did last.
func Claim(lrn int) string { return Claims + strconv.Itoa(lrn) }

// Activity is the key activity/<LRN> of a record.Activity: the activity of the server's worker, or the
// reason why it waits.
func Activity(lrn int) string { return Activities + strconv.Itoa(lrn) }

// Twin is twins/<LRN>: Twin, a host that has the server's LRN while a different host works for that.
func Twin(lrn int) string { return Twins + strconv.Itoa(lrn) }
