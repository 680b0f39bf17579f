package record

import (
	"fmt"
	"strconv"
	"strings"
)

// DefaultPrefix is where the keys lie unless an operator says otherwise.
const DefaultPrefix = "/neco/"

// Keys names every key below one prefix. The zero value's prefix is empty.
type Keys struct{ prefix string }

// NewKeys returns the keys below the prefix, which is made to end in one slash.
func NewKeys(prefix string) Keys {
	return Keys{prefix: strings.TrimRight(prefix, "/") + "/"}
}

// All is the prefix of every key.
func (k Keys) All() string { return k.prefix }

// Format holds the format number that `neco init` writes and everybody checks.
func (k Keys) Format() string { return k.prefix + "format" }

// Infos is the prefix of what is known and wished for.
func (k Keys) Infos() string { return k.prefix + "info/" }

// BootServers is the prefix of the registered boot servers.
func (k Keys) BootServers() string { return k.prefix + "info/bootservers/" }

// BootServer is the key of a registered server; its value is `{}`.
func (k Keys) BootServer(lrn int) string { return k.BootServers() + strconv.Itoa(lrn) }

// Release holds the newest acceptable version.
func (k Keys) Release() string { return k.prefix + "info/release" }

// Published holds the digests of the release that servers would take, a Published.
func (k Keys) Published() string { return k.prefix + "info/published" }

// Target holds the version that an operator asked for, a Target.
func (k Keys) Target() string { return k.prefix + "info/target" }

// Pause keeps updates from starting, a Pause.
func (k Keys) Pause() string { return k.prefix + "info/pause" }

// Recovery is written when an operator has recovered, and waits for the update to be made
// again, a Recovery.
func (k Keys) Recovery() string { return k.prefix + "info/recovery" }

// Check is touched to have releases looked for at once.
func (k Keys) Check() string { return k.prefix + "info/check" }

// CheckFailure holds why releases could not be looked for, a CheckFailure; absent if they
// could.
func (k Keys) CheckFailure() string { return k.prefix + "info/check-failure" }

// Statuses is the prefix of everything about the update that runs.
func (k Keys) Statuses() string { return k.prefix + "status/" }

// Current holds the update that runs or ran last, a Request.
func (k Keys) Current() string { return k.Statuses() + "current" }

// Gate holds how far the update's workers may go, a Gate.
func (k Keys) Gate() string { return k.Statuses() + "gate" }

// Workers is the prefix of the workers' records.
func (k Keys) Workers() string { return k.Statuses() + "bootserver/" }

// Worker holds how far the server's worker is, a Status.
func (k Keys) Worker(lrn int) string { return k.Workers() + strconv.Itoa(lrn) }

// AllContents is the prefix of the results of what one server does for all.
func (k Keys) AllContents() string { return k.prefix + "contents/" }

// Contents holds the result of one such job, a Contents.
func (k Keys) Contents(name string) string { return k.AllContents() + name }

// AllConfig is the prefix of the configuration.
func (k Keys) AllConfig() string { return k.prefix + "config/" }

// Config holds the value of one configuration key, a JSON string.
func (k Keys) Config(key string) string { return k.AllConfig() + key }

// UpdaterLeader is where updaters campaign; it names the leader.
func (k Keys) UpdaterLeader() string { return k.prefix + "leader/updater/current" }

// WorkerLeader is where workers campaign to do a component's contents for all.
func (k Keys) WorkerLeader(component string) string { return k.prefix + "leader/worker/" + component }

// Turns is the prefix of the rolling components' turns.
func (k Keys) Turns() string { return k.prefix + "leader/turn/" }

// Turn holds whose turn it is at a rolling component, a Turn.
func (k Keys) Turn(component string) string { return k.Turns() + component }

// AllHistory is the prefix of the updates that there were.
func (k Keys) AllHistory() string { return k.prefix + "history/" }

// History holds the n-th update, from 1, a History. Numbers have ten digits so
// that they sort.
func (k Keys) History(n int) string { return fmt.Sprintf("%s%010d", k.AllHistory(), n) }

// Audits is the prefix of what operators did.
func (k Keys) Audits() string { return k.prefix + "audit/" }

// Audit holds the n-th of what operators did, from 1, an Audit.
func (k Keys) Audit(n int) string { return fmt.Sprintf("%s%010d", k.Audits(), n) }

// AuditCounter holds the number of the last Audit.
func (k Keys) AuditCounter() string { return k.prefix + "counters/audit" }

// Outbox is the prefix of alerts that are not sent yet.
func (k Keys) Outbox() string { return k.prefix + "outbox/" }

// Alert holds one alert that is not sent yet, by its ID, an Alert.
func (k Keys) Alert(id string) string { return k.Outbox() + id }

// Presences is the prefix of the workers that live.
func (k Keys) Presences() string { return k.prefix + "presence/" }

// Presence is bound to a lease while the server's worker lives, a Presence.
func (k Keys) Presence(lrn int) string { return k.Presences() + strconv.Itoa(lrn) }

// Inventories is the prefix of what servers have.
func (k Keys) Inventories() string { return k.prefix + "inventory/" }

// Inventory holds how the server's components differ from the plan, an Inventory.
func (k Keys) Inventory(lrn int) string { return k.Inventories() + strconv.Itoa(lrn) }

// Degraded holds what is not as the last update left it, as the leader sees it, a
// Degraded.
func (k Keys) Degraded() string { return k.prefix + "info/degraded" }

// Hurry holds who wants the next update to begin outside of the window; its start removes
// it.
func (k Keys) Hurry() string { return k.prefix + "info/hurry" }

// Repair holds an operator's wish for a repair, a Repair.
func (k Keys) Repair() string { return k.prefix + "info/repair" }

// Claim holds which host and process may work as that server, and did last: a claim of
// package keyspace.
func (k Keys) Claim(lrn int) string { return k.Claims() + strconv.Itoa(lrn) }

// Claims is the prefix of the servers' claims.
func (k Keys) Claims() string { return k.prefix + "claims/" }

// Activities is the prefix of what the workers are doing.
func (k Keys) Activities() string { return k.prefix + "activity/" }

// Activity holds what the server's worker is doing, or for what it waits, an Activity.
func (k Keys) Activity(lrn int) string { return k.Activities() + strconv.Itoa(lrn) }

// ParseServerKey returns the boot server that the key names right below the prefix, and
// false if it names none.
func ParseServerKey(prefix, key string) (lrn int, ok bool) {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok {
		return 0, false
	}
	lrn, err := ParseLRN(rest)
	return lrn, err == nil
}
