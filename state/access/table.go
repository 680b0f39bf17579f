package access

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"bijou/state/keys"
	"bijou/state/secret"
)

// The sizes of values, in bytes. They leave room for what a newer binary adds.
const (
	small  = 4 << 10   // an index, a head, a number
	record = 64 << 10  // a record with a message
	large  = 128 << 10 // a settings node or the content of a secret, which is a blob above 64 KiB; a batch of a log
	huge   = 512 << 10 // a chunk of a blob; an action with its progress and output
)

// rows is the table. A unit is a machine's if its record says so, which no agent can change.
//
// A pattern that ends with a slash is of prefixes; what a list or a watch of one shows is decided key by
// key, as for a get. A prefix without a row is listed and watched by operators only.
var rows = sync.OnceValue(func() []*row {
	all := table()
	for _, r := range all {
		r.segments = parse(r.pattern)
	}
	return all
})

func table() []*row {
	return []*row{
		{pattern: keys.Format, get: anybody, why: "only operators say what wrote the store"},
		{pattern: keys.Environment, get: anybody, watch: anybody,
			why: "its settings are the operators', and which binary agents run is their word"},
		{pattern: keys.CopyLock, get: anybody, why: "only operators copy a model"},
		{pattern: keys.Moved, get: anybody, why: "only operators move a model"},
		{pattern: keys.PartialCopy, get: anybody, why: "only operators copy a model"},
		{pattern: keys.Provisioner, why: "it is the provisioner's trouble"},

		{pattern: "presence/machine-{machine}", max: record, shape: objectOf[presenceShape], get: ownMachine, lease: presentMachine,
			why: "a machine says that its own agent lives, under its lease"},
		{pattern: "presence/unit-{tag}", max: record, shape: objectOf[presenceShape], get: peer("tag"), del: unit("tag"), lease: unit("tag"),
			why: "a machine says that its units' agents live, under its lease; units of its applications may know of one another"},
		{pattern: "claims/machine-{machine}", record: true, max: record, shape: objectOf[claimShape], get: ownMachine, watch: ownMachine, put: claims,
			why: "a machine is claimed from itself, with an epoch that grows"},
		{pattern: keys.Leader("provisioner"), get: anybody,
			why: "provisioners have the store itself; agents ask if one is there"},
		{pattern: "leaders/services/{service}", max: record, shape: objectOf[presenceShape], get: seesLeader, watch: service, del: resigns, lease: takesLead,
			why: "an application is led by a unit of it, of the machine that asks, once no other leads it"},
		{pattern: "leaders/{rest}", why: "no agent leads anything but its applications"},

		{pattern: "charms/{charm}", get: charm,
			why: "a machine sees the charms of its applications; operators add them"},
		{pattern: "tools/{name}", get: anybody, why: "agents fetch the binary that operators have added"},

		{pattern: "services/{service}", get: seesService, watch: service,
			why: "applications are the operators'; units see theirs and those related to it"},
		{pattern: "services/{service}/", watch: service, why: "a unit hears of its own application"},
		{pattern: "services/{service}/config", get: service,
			why: "operators configure an application, for its units"},
		{pattern: "services/{service}/status", max: record, shape: objectOf[statusShape], get: service, put: leads,
			why: "its leader sets an application's status"},
		{pattern: "services/{service}/upgrade", get: service, why: "operators upgrade an application"},
		{pattern: "services/{service}/leader-settings", max: large, shape: objectOf[settingsShape], get: service, put: leads,
			why: "its leader tells an application's units"},
		{pattern: "services/{service}/relations/", list: seesRelations,
			why: "a unit sees the relations of its application"},
		{pattern: "services/{service}/relations/{relation}", get: seesRelations,
			why: "operators relate applications"},
		{pattern: "services/{service}/secrets", record: true, max: record, shape: objectOf[secretIndex], get: service, put: listsServiceSecrets,
			why: "its leader lists the secrets that it makes for an application; operators grant theirs"},

		{pattern: "units/{unit}", record: true, max: record, shape: objectOf[unitShape], get: seesUnit, watch: unitOrGone("unit"), put: changesUnit,
			why: "of its units' records a machine changes charm, status and workload, clears what operators have resolved, and ends a unit that is dying or a subordinate that nothing holds"},
		{pattern: "units/{service}/", list: seesUnits,
			why: "units see those of their applications, and of applications related to them"},
		{pattern: "units/{unit}/", watch: unitOrGone("unit"), why: "a unit hears of itself"},
		{pattern: "units/{unit}/ports", max: record, shape: listOf[portShape], get: unit("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit opens its own ports"},
		{pattern: "units/{unit}/actions", max: small, shape: objectOf[queueShape], get: unit("unit"), put: unit("unit"),
			why: "a unit's agent takes what waits for it"},
		{pattern: "units/{unit}/debug", get: unit("unit"), del: unit("unit"),
			why: "operators debug; a session that is over is ended by the unit's agent"},
		{pattern: "units/{unit}/secrets", record: true, max: record, shape: objectOf[secretIndex], get: seesSecrets, put: listsSecrets,
			why: "a unit lists the secrets that it makes and reads; the owner of a secret takes it from the lists of those who have read it, as it removes it"},
		{pattern: "units/{unit}/storage", max: small, shape: listOf[string], get: unit("unit"), put: listsStorage, del: unit("unit"),
			why: "a unit lists the storage that it has"},
		{pattern: "units/{unit}/state", max: large, shape: objectOf[settingsShape], get: unit("unit"), put: unit("unit"),
			why: "a unit's own notes"},
		{pattern: "units/{unit}/restored", max: record, shape: objectOf[restoredShape], get: unit("unit"), put: replaces("unit"), del: unit("unit"),
			why: "a restored unit's agent says how its folder differs"},

		{pattern: "actions/{n}", record: true, max: huge, shape: objectOf[actionShape], get: action, watch: action, put: runsAction, del: forgetsAction,
			why: "operators ask for actions, and programs of a machine for commands to its units; the unit's agent says what became of them"},
		{pattern: "resources/{service}/{name}", get: service, why: "operators give an application its resources"},

		{pattern: "secrets/{id}", record: true, max: record, shape: objectOf[secretShape], get: seesSecret, watch: seesSecret, put: changesSecret, del: removesSecret,
			why: "a secret is its owner's: a unit's, or its application's through the leader; who may read it notes that among its readers"},
		{pattern: "secret-contents/{id}/{revision}", max: large, shape: objectOf[sealedShape], get: readsSecret, put: sealsSecret, del: prunesSecret,
			why: "the owner writes a secret, and it is read by whom it was granted to, as long as it is"},
		{pattern: "secret-keys/{rest}", why: "no agent has the keys that seal secrets from the store"},

		{pattern: "storage/{storage}", record: true, max: small, shape: objectOf[storageShape], get: storageHere, watch: storageHere, put: changesStorage, del: endsStorage,
			why: "a machine's agents make, bind, release and remove the storage on it, for its units"},

		{pattern: "machines/{machine}", record: true, max: record, shape: objectOf[machineShape], get: ownMachine, watch: ownMachine, put: changesMachine,
			why: "of its own record a machine changes addresses, binary and that it runs, and it ends once it is dying"},
		{pattern: "machines/{machine}/", watch: ownMachine, why: "a machine hears of itself"},
		{pattern: "machines/{machine}/storage", max: record, shape: objectOf[machineStorageShape], get: ownMachine, put: listsMachineStorage, del: ownMachine,
			why: "a machine lists the storage on it"},
		{pattern: "machines/{machine}/units/", list: ownMachine, why: "a machine sees its units"},
		{pattern: "machines/{machine}/units/{unit}", get: ownMachine,
			why: "where units go is the operators' and the provisioner's word"},
		{pattern: "spares/{machine}",
			why: "which machines are unused is the operators' and the provisioner's word"},
		{pattern: "first-units/{machine}",
			why: "which machines are unused is the operators' and the provisioner's word"},

		{pattern: "relations/{relation}", get: seesRelation,
			why: "operators relate applications, and the provisioner ends relations"},
		{pattern: "relations/{relation}/members/", list: relationOrGone,
			why: "units see who is in their relations"},
		{pattern: "relations/{relation}/members/{service}/", list: relationOrGone, watch: relationOrGone,
			why: "units see who is in their relations"},
		{pattern: "relations/{relation}/members/{member}", max: small, shape: objectOf[memberShape], get: seesRelation, put: entersRelation, del: unit("member"),
			why: "a unit enters and leaves the relations of its application"},
		{pattern: "relations/{relation}/settings/{member}", max: large, shape: objectOf[settingsShape], get: readsSettings, put: writesSettings,
			why: "a unit writes its own settings; those in the relation read them, in container scope those of one principal"},
		{pattern: "relations/{relation}/apps/{service}", max: large, shape: objectOf[settingsShape], get: readsApp, watch: relationOrGone, put: writesApp,
			why: "an application's leader writes its settings; the other end reads them, and in a peer relation all"},

		{pattern: "uniters/{unit}/", list: unitOrGone("unit"), why: "a unit's agent has its own records"},
		{pattern: "uniters/{unit}/op", max: record, shape: objectOf[opShape], get: unit("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit's agent has its own records"},
		{pattern: "uniters/{unit}/workflow", max: record, shape: objectOf[workflowShape], get: unit("unit"), put: progresses,
			why: "a unit's agent has its own records; a unit that was installed stays so, since its machine is no longer as good as new"},
		{pattern: "uniters/{unit}/relations/{relation}", max: record, shape: objectOf[relationStateShape], get: unit("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit's agent has its own records"},
		{pattern: "uniters/{unit}/relations/{relation}/{member}", max: small, shape: objectOf[memberStateShape], get: unit("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit's agent has its own records"},
		{pattern: "uniters/{unit}/services/{relation}/{service}", max: small, shape: objectOf[memberStateShape], get: unit("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit's agent has its own records"},

		{pattern: "history/{unit}/", list: unitOrGone("unit"),
			why: "a unit's agent knows what hooks it has run"},
		{pattern: "history/{unit}/{slot}", max: record, shape: objectOf[hookRunShape], get: unit("unit"), put: notesHook,
			why: "a unit's agent notes its last hooks, in as many places as there are"},

		{pattern: "logs/machine-{machine}", max: small, shape: objectOf[logHeadShape], get: ownMachine, put: logsHead,
			why: "a machine logs for itself and its units"},
		{pattern: "logs/{unit}", max: small, shape: objectOf[logHeadShape], get: unit("unit"), put: logsHead,
			why: "a machine logs for itself and its units"},
		{pattern: "log/machine-{machine}/{seq}", max: large, shape: objectOf[logBatchShape], get: ownMachine, put: logsNext, del: dropsOldest,
			why: "a log grows at its end, and loses its oldest batch"},
		{pattern: "log/{unit}/{seq}", max: large, shape: objectOf[logBatchShape], get: unit("unit"), put: logsNext, del: dropsOldest,
			why: "a log grows at its end, and loses its oldest batch"},

		{pattern: keys.MachineCounter, why: "operators add machines"},
		{pattern: keys.RelationCounter, why: "operators relate applications"},
		{pattern: keys.ActionCounter, max: small, shape: number, get: anybody, put: gives(keys.Actions),
			why: "a program of a machine asks its unit for a command, which takes the next number"},
		{pattern: keys.StorageCounter, max: small, shape: number, get: anybody, put: gives(keys.Storages),
			why: "a hook adds storage, which takes the next number"},
		{pattern: "counters/units/{service}", why: "operators and the provisioner add units"},

		{pattern: "requests/{unit}/{what}", max: small, shape: objectOf[requestShape], get: unit("unit"), put: requests,
			why: "a unit's agent asks the provisioner for what is not its own; the provisioner takes the request away"},

		{pattern: "gateway-leases/{who}/{id}", why: "a gateway notes whose a lease is; no agent has to do with its notes"},

		{pattern: "blob-heads/{sum}", quiet: true, max: small, shape: objectOf[blobHeadShape], get: anybody, put: headsBlob,
			why: "who knows the sum of bytes was told it by a record; what is complete stays as it is"},
		{pattern: "blobs/{sum}/{chunk}", raw: true, quiet: true, max: huge, shape: anyBytes, get: anybody, put: writesBlob,
			why: "who knows the sum of bytes was told it by a record; what is complete stays as it is"},
	}
}

// anybody is for what all agents may.
func anybody(*ask) bool { return true }

func ownMachine(a *ask) bool { return a.vars["machine"] == a.me }

// presentMachine is for what a machine that was removed may do no more.
func presentMachine(a *ask) bool { return ownMachine(a) && a.isPresent() }

// unit is for what the agent of the unit that the key names may.
func unit(name string) rule { return func(a *ask) bool { return a.hosts(a.vars[name]) } }

// unitOrGone is for lists and watches, which show nothing of a unit that is gone but that it is.
func unitOrGone(name string) rule {
	return func(a *ask) bool { return a.hosts(a.vars[name]) || a.isGone(a.vars[name]) }
}

// peer is for what units may of those of the same service.
func peer(name string) rule {
	return func(a *ask) bool { return a.hosts(a.vars[name]) || a.hasService(serviceOf(a.vars[name])) }
}

// replaces is for records that an agent changes and never begins.
func replaces(name string) rule {
	return func(a *ask) bool { return a.old != nil && a.hosts(a.vars[name]) }
}

func service(a *ask) bool { return a.hasService(a.vars["service"]) }
func leads(a *ask) bool   { return a.leads(a.vars["service"]) }
func charm(a *ask) bool   { return a.runsCharm(a.vars["charm"]) }

// maxEpoch is above all that a claim is given: a restored one has the Unix time. Above it, epochs grow one by one, so
// that there is always a next.
const maxEpoch = 1 << 40

func claims(a *ask) bool {
	before, _ := decode[claimRecord](a.old)
	after, ok := decode[claimRecord](a.new)
	isNext := after.Epoch == before.Epoch+1 || after.Epoch <= maxEpoch
	return ok && presentMachine(a) && after.Epoch > before.Epoch && isNext
}

// takesLead lets a unit follow another one of the same machine, and one that is gone.
func takesLead(a *ask) bool {
	after, ok := decode[presenceRecord](a.new)
	return ok && serviceOf(after.Unit) == a.vars["service"] && a.hosts(after.Unit) && resigns(a)
}

func resigns(a *ask) bool {
	if a.old == nil {
		return true
	}
	before, ok := decode[presenceRecord](a.old)
	return ok && (a.hosts(before.Unit) || a.isGone(before.Unit))
}

// seesLeader also lets a machine see that a unit leads which is gone, as its last unit of the service may be.
func seesLeader(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isGone(a.leader(s))
}

func seesService(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isRelated(s) || a.walks()
}

func seesRelations(a *ask) bool { return a.hasService(a.vars["service"]) || a.walks() }

func listsServiceSecrets(a *ask) bool {
	s := a.vars["service"]
	before, _ := decode[secretIndex](a.old)
	after, ok := decode[secretIndex](a.new)
	return ok && a.leads(s) && slices.Equal(before.Granted, after.Granted) && (a.old == nil || a.keeps("owned")) &&
		a.areMade(added(before.Owned, after.Owned), secret.Owner{Service: s})
}

// areMade reports whether the commit makes the secrets, for that owner: nobody lists those of others for its own.
func (a *ask) areMade(ids []string, owner secret.Owner) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		r, ok := loadSecret(a.after(keys.Secret(id)), id)
		return !ok || a.get(keys.Secret(id)) != nil || r.Owner != owner
	})
}

func seesUnit(a *ask) bool {
	of := serviceOf(a.vars["unit"])
	return a.hosts(a.vars["unit"]) || a.hasService(of) || a.isRelated(of) || a.walks()
}

// seesUnits also lets an agent list a service that is gone, which it learns from the empty list.
func seesUnits(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isRelated(s) || a.get(keys.Service(s)) == nil
}

func changesUnit(a *ask) bool {
	name := a.vars["unit"]
	u, _ := decode[unitRecord](a.new)

	return a.hosts(name) &&
		a.keeps("charm", "status", "active-with", "workload", "life", "resolved", "resolved-relations") &&
		a.isKeptOrCleared("resolved") && a.loses("resolved-relations") &&
		a.isKeptOr("charm", func(before, after string) bool { return a.deploys(serviceOf(name), before, after) }) &&
		a.isKeptOr("active-with", func(_, after string) bool { return after == u.Charm }) &&
		a.isKeptOr("life", func(before, after string) bool {
			return after == dying && before == alive && u.Principal != "" && !a.isHeld(name, u.Principal) ||
				after == dead && before == dying
		})
}

// deploys reports whether a unit goes over to the charm of its service, or to that of the upgrade that is under way.
// None goes back from the charm of its service: an older one may see more.
func (a *ask) deploys(service, before, after string) bool {
	if a.get(keys.Charm(after)) == nil {
		return false
	}
	s, _ := load[serviceRecord](a.Placement, keys.Service(service))
	if after == s.Charm {
		return true
	}

	mark, _ := load[upgradeRecord](a.Placement, keys.Upgrade(service))
	return before != s.Charm && (after == mark.Before || after == mark.Charm)
}

// isHeld reports whether an alive relation of container scope holds a subordinate to its principal.
func (a *ask) isHeld(unit, principal string) bool {
	prefix := keys.ServiceRelations(serviceOf(unit))
	for key, value := range a.list(prefix) {
		index, ok := decode[relationIndex](value)
		if !ok || !strings.HasPrefix(index.Other, serviceOf(principal)+":") {
			continue
		}
		if r, _ := a.relation(strings.TrimPrefix(key, prefix)); r.Life == alive && r.Scope == "container" {
			return true
		}
	}

	return false
}

func seesSecrets(a *ask) bool { return a.hosts(a.vars["unit"]) || a.isReadBy(a.vars["unit"]) }

func listsSecrets(a *ask) bool {
	name := a.vars["unit"]
	before, _ := decode[secretIndex](a.old)
	after, ok := decode[secretIndex](a.new)
	if !ok || !slices.Equal(before.Granted, after.Granted) || a.old != nil && !a.keeps("owned", "consumed") {
		return false
	}

	if !a.hosts(name) {
		taken := added(after.Consumed, before.Consumed)
		return slices.Equal(before.Owned, after.Owned) &&
			len(added(before.Consumed, after.Consumed)) == 0 && len(taken) > 0 &&
			len(after.Consumed) == len(before.Consumed)-len(taken) &&
			!slices.ContainsFunc(taken, func(id string) bool { return !a.isRemoving(id) })
	}

	return a.areMade(added(before.Owned, after.Owned), secret.Owner{Unit: name}) &&
		!slices.ContainsFunc(added(before.Consumed, after.Consumed), func(id string) bool {
			r, _ := loadSecret(a.after(keys.Secret(id)), id)
			_, reads := r.Consumers[name]
			return !reads
		})
}

// isRemoving reports whether the commit removes a secret that the machine that asks manages.
func (a *ask) isRemoving(id string) bool {
	r, ok := loadSecret(a.get(keys.Secret(id)), id)
	return ok && a.manages(r) && a.after(keys.Secret(id)) == nil
}

// listsStorage lists only what is the unit's after the commit.
func listsStorage(a *ask) bool {
	var before, after []string
	if a.old != nil && json.Unmarshal(a.old, &before) != nil || json.Unmarshal(a.new, &after) != nil {
		return false
	}

	return a.hosts(a.vars["unit"]) && !slices.ContainsFunc(added(before, after), func(id string) bool {
		s, _ := decode[storageRecord](a.after(keys.Storage(id)))
		return s.Unit != a.vars["unit"]
	})
}

func action(a *ask) bool {
	n, _ := strconv.Atoi(a.vars["n"])
	r, ok := decode[actionRecord](a.get(keys.Action(n)))
	return !ok && a.get(keys.Action(n)) == nil || a.hosts(r.Unit)
}

const pending = "pending"

func runsAction(a *ask) bool {
	is, ok := decode[actionRecord](a.new)
	if !ok {
		return false
	}
	if a.old == nil { // a command, and none of the charm's actions: those are operators' to ask for
		return a.hosts(is.Unit) && is.Name == "" && is.Status == pending && a.isNext(keys.ActionCounter, a.vars["n"])
	}

	was, _ := decode[actionRecord](a.old)
	return a.hosts(was.Unit) && is.Status != pending &&
		a.keeps("status", "started", "run", "completed", "progress", "message", "code", "results", "output")
}

func forgetsAction(a *ask) bool {
	was, ok := decode[actionRecord](a.old)
	return ok && a.hosts(was.Unit) && was.Status != pending && was.Status != "running"
}

func seesSecret(a *ask) bool {
	value := a.get(keys.Secret(a.vars["id"]))
	r, ok := loadSecret(value, a.vars["id"])
	return value == nil || ok && (a.manages(r) || a.reads(r) || a.consumes(r))
}

func readsSecret(a *ask) bool {
	r, ok := loadSecret(a.get(keys.Secret(a.vars["id"])), a.vars["id"])
	return ok && (a.manages(r) || a.reads(r))
}

func changesSecret(a *ask) bool {
	id := a.vars["id"]
	is, ok := loadSecret(a.new, id)
	if !ok {
		return false
	}
	if a.old == nil {
		// Contents that a secret of that id has left behind are somebody else's.
		return isSecretID(id) && a.makes(is) && a.notesReaders(secret.Record{}, is) && len(a.list(keys.ContentsOfSecret(id))) == 0
	}

	was, ok := loadSecret(a.old, id)
	if !ok || !isKept(a, "owner", "origin", "created") {
		return false
	}
	if a.manages(was) {
		return a.notesReaders(was, is)
	}

	return a.reads(was) && a.keeps("consumers", "revisions") &&
		a.notesReaders(was, is) && a.forgetsReaders(was, is) && isPruned(was, is)
}

// isSecretID reports whether a secret of an agent's can have that id. The operators' credential has one that everybody
// knows, and services that are trusted read whatever is there.
func isSecretID(id string) bool {
	parsed, err := secret.ParseID(id)
	return err == nil && parsed == id && id != secret.CredentialID
}

// isKept reports whether the members stay as they are.
func isKept(a *ask, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		before, after := a.field(name)
		return !isSame(before, after)
	})
}

// makes reports whether a secret that is new is one that its maker may have.
func (a *ask) makes(r secret.Record) bool {
	if r.Owner.Unit != "" {
		return r.Owner.Service == "" && a.hosts(r.Owner.Unit)
	}
	return r.Owner.Service != "" && a.leads(r.Owner.Service)
}

// maxLabel bounds what a reader calls a secret, in bytes: the record is its owner's.
const maxLabel = 1 << 10

// notesReaders reports whether of the readers only those of the machine that asks are new or have changed. Who could
// name others would read their lists of secrets.
func (a *ask) notesReaders(was, is secret.Record) bool {
	for unit, c := range is.Consumers {
		before, there := was.Consumers[unit]
		if there && before == c {
			continue
		}
		if !a.hosts(unit) || len(c.Label) > maxLabel {
			return false
		}
	}
	return true
}

// forgetsReaders reports whether of the readers only those of the machine that asks have gone.
func (a *ask) forgetsReaders(was, is secret.Record) bool {
	for unit := range was.Consumers {
		if _, there := is.Consumers[unit]; !there && !a.hosts(unit) {
			return false
		}
	}

	return true
}

// isPruned reports whether of the revisions those have gone at most that nobody reads any more, where the owner
// has said that these go.
func isPruned(was, is secret.Record) bool {
	unread := is
	unread.Revisions = was.Revisions
	untracked := unread.Untracked(func(string, secret.Grant) bool { return true })

	for n, before := range was.Revisions {
		after, there := is.Revisions[n]
		if there && after != before || !there && !(was.AutoPrune && slices.Contains(untracked, n)) {
			return false
		}
	}
	return len(is.Revisions) <= len(was.Revisions)
}

func removesSecret(a *ask) bool {
	r, ok := loadSecret(a.old, a.vars["id"])
	return ok && a.manages(r)
}

func sealsSecret(a *ask) bool {
	id := a.vars["id"]
	is, ok := loadSecret(a.after(keys.Secret(id)), id)
	n, _ := strconv.Atoi(a.vars["revision"])
	if _, there := is.Revisions[n]; !ok || !there {
		return false
	}

	if was, ok := loadSecret(a.get(keys.Secret(id)), id); ok {
		return a.manages(was)
	}
	return a.makes(is)
}

// prunesSecret also lets a reader take away the content of a revision that its record, which the same commit writes,
// has no more.
func prunesSecret(a *ask) bool {
	id := a.vars["id"]
	r, ok := loadSecret(a.get(keys.Secret(id)), id)
	if !ok {
		return false
	}
	if a.manages(r) {
		return true
	}

	n, _ := strconv.Atoi(a.vars["revision"])
	is, ok := loadSecret(a.after(keys.Secret(id)), id)
	_, there := is.Revisions[n]
	return ok && !there && a.reads(r)
}

func storageHere(a *ask) bool {
	value := a.get(keys.Storage(a.vars["storage"]))
	s, ok := decode[storageRecord](value)
	return value == nil || ok && s.Machine == a.me
}

func changesStorage(a *ask) bool {
	is, ok := decode[storageRecord](a.new)
	if !ok || is.Machine != a.me || !a.isPresent() {
		return false
	}
	if a.old == nil {
		_, n, _ := strings.Cut(a.vars["storage"], "/")
		return a.hosts(is.Unit) && is.Life == alive && is.State == pending && a.isNext(keys.StorageCounter, n)
	}

	was, _ := decode[storageRecord](a.old)
	return was.Machine == a.me && a.keeps("made", "bound", "unit", "state", "location", "since") && a.isKeptOrCleared("unit") &&
		(is.Made || !was.Made) // what was never made, an agent may end
}

// endsStorage is for what an operator has told to go and no unit has, and for what was never made.
func endsStorage(a *ask) bool {
	was, ok := decode[storageRecord](a.old)
	return ok && was.Machine == a.me && (!was.Made || was.Life != alive && was.Unit == "")
}

func changesMachine(a *ask) bool {
	return ownMachine(a) && a.keeps("status", "message", "attempts", "retry-at", "addresses", "tools", "life") &&
		a.isKeptOrCleared("message", "attempts", "retry-at") &&
		a.isKeptOr("status", func(_, after string) bool { return after == "running" }) &&
		a.isKeptOr("tools", func(_, after string) bool { return isToolName(after) }) && a.namesHosts() &&
		a.isKeptOr("life", func(before, after string) bool { return before == dying && after == dead })
}

// isToolName takes VERSION-SHA8, the name of a binary.
func isToolName(text string) bool {
	return len(text) <= 100 && strings.Trim(strings.ToLower(text), "0123456789abcdefghijklmnopqrstuvwxyz.+~_-") == ""
}

// namesHosts reports whether the machine's addresses are such: operators and other units connect to them.
func (a *ask) namesHosts() bool {
	m, _ := decode[machineShape](a.new)
	before, _ := decode[machineShape](a.old)
	return m.Addresses == before.Addresses || isHost(m.Addresses.Private) && isHost(m.Addresses.Public)
}

// isHost takes an IP address or the name of a host, or nothing.
func isHost(text string) bool {
	if ip, err := netip.ParseAddr(text); err == nil {
		text = ip.Zone()
	}

	odd := func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '.' || c == '_')
	}
	return len(text) <= 253 && !strings.HasPrefix(text, "-") && !strings.ContainsFunc(text, odd)
}

// listsMachineStorage lists only what is on the machine after the commit: whoever removes a machine forgets all
// that is in its list.
func listsMachineStorage(a *ask) bool {
	before, _ := decode[machineStorage](a.old)
	after, ok := decode[machineStorage](a.new)
	return ok && presentMachine(a) && !slices.ContainsFunc(added(before.All, after.All), func(id string) bool {
		s, _ := decode[storageRecord](a.after(keys.Storage(id)))
		return s.Machine != a.me
	})
}

func seesRelation(a *ask) bool { return a.isIn(a.vars["relation"]) || a.walks() }

// relationOrGone is for lists and watches, which show nothing of a relation that is gone.
func relationOrGone(a *ask) bool {
	id := a.vars["relation"]
	return a.isIn(id) || a.isRelationGone(id) || a.walks()
}

func entersRelation(a *ask) bool {
	name := a.vars["member"]
	is, ok := decode[memberRecord](a.new)
	if !ok || !a.hosts(name) {
		return false
	}
	if a.old != nil {
		return a.keeps("version")
	}

	r, _ := a.relation(a.vars["relation"])
	u, _ := load[unitRecord](a.Placement, keys.Unit(name))
	return r.has(serviceOf(name)) && r.Life == alive && u.Life == alive &&
		(is.Principal == "" || is.Principal == name && u.Principal == "" || is.Principal == u.Principal)
}

// readsSettings also lets those who were in a relation that is gone read what is left of it.
func readsSettings(a *ask) bool {
	id := a.vars["relation"]
	r, there := a.relation(id)
	switch {
	case a.hosts(a.vars["member"]):
		return true
	case !there:
		return a.isRelationGone(id) && a.wasIn(id)
	case !a.isIn(id):
		return false
	}

	return r.Scope != "container" || a.sharesPrincipal(id, a.vars["member"])
}

// writesSettings asks for the relation only as a unit enters it: a hook writes in hundreds.
func writesSettings(a *ask) bool {
	name := a.vars["member"]
	if !a.hosts(name) {
		return false
	}
	if a.old != nil {
		return true
	}
	r, _ := a.relation(a.vars["relation"])
	return r.has(serviceOf(name))
}

func readsApp(a *ask) bool {
	s := a.vars["service"]
	r, there := a.relation(a.vars["relation"])
	isOther := func(e endpoint) bool { return e.Service != s && a.hasService(e.Service) }
	return there && (r.isPeer() && a.hasService(s) || a.leads(s) || slices.ContainsFunc(r.Endpoints, isOther))
}

func writesApp(a *ask) bool {
	r, _ := a.relation(a.vars["relation"])
	return r.has(a.vars["service"]) && a.leads(a.vars["service"])
}

// progresses refuses a workflow that takes back an installation. The machine of such a unit would count as unused once
// the unit is removed, and go to another application.
func progresses(a *ask) bool {
	before, _ := decode[workflowShape](a.old)
	after, ok := decode[workflowShape](a.new)
	return ok && a.hosts(a.vars["unit"]) && (after.Charm != "" || before.Charm == "") && (after.State != "" || before.State == "")
}

// maxSlots is how many hooks of a unit are remembered.
const maxSlots = 50

func notesHook(a *ask) bool {
	slot, _ := strconv.Atoi(a.vars["slot"])
	return slot < maxSlots && a.hosts(a.vars["unit"])
}

// logSource returns whose log the key is of; ok is false if it is another machine's.
func (a *ask) logSource() (source string, ok bool) {
	if unit := a.vars["unit"]; unit != "" {
		return unit, a.hosts(unit)
	}
	return "machine-" + a.vars["machine"], presentMachine(a)
}

// maxLogBatches is how many batches of a log there are.
const maxLogBatches = 64

// logsHead has a log grow by a batch at most, and lose the oldest where it has as many as there may be.
func logsHead(a *ask) bool {
	source, own := a.logSource()
	before, _ := decode[logHead](a.old)
	after, ok := decode[logHead](a.new)
	if !own || !ok || after.Batch < before.Batch || after.Batch > before.Batch+1 || after.Lines < before.Lines {
		return false
	}
	return after.Batch <= maxLogBatches || a.after(keys.LogBatch(source, after.Batch-maxLogBatches)) == nil
}

// logsNext takes the newest batch of a log, and the one after it.
func logsNext(a *ask) bool {
	source, own := a.logSource()
	if !own {
		return false
	}

	head, _ := load[logHead](a.Placement, keys.LogHead(source))
	seq, err := strconv.ParseInt(a.vars["seq"], 10, 64)
	if err != nil || fmt.Sprintf("%010d", seq) != a.vars["seq"] || seq != head.Batch && seq != head.Batch+1 {
		return false
	}
	return a.old == nil || a.appends()
}

// appends reports whether a batch keeps the lines that it has.
func (a *ask) appends() bool {
	type batch struct {
		First int64             `json:"first"`
		Lines []json.RawMessage `json:"lines"`
	}
	before, _ := decode[batch](a.old)
	after, ok := decode[batch](a.new)
	if !ok || after.First != before.First || len(after.Lines) < len(before.Lines) {
		return false
	}

	return slices.EqualFunc(before.Lines, after.Lines[:len(before.Lines)], isSame)
}

// dropsOldest takes away a batch that is too old for the log as the commit leaves it.
func dropsOldest(a *ask) bool {
	source, own := a.logSource()
	head, _ := decode[logHead](a.after(keys.LogHead(source)))
	seq, err := strconv.ParseInt(a.vars["seq"], 10, 64)
	return own && err == nil && seq <= head.Batch-maxLogBatches
}

// requests takes no more of them than there can be: one for the unit, and two for each of its relations. The value is
// what the key says: the leader removes what it finds by the value.
func requests(a *ask) bool {
	name := a.vars["unit"]
	kind, relation, _ := strings.Cut(a.vars["what"], "-")
	is, _ := decode[requestShape](a.new)
	switch {
	case !a.hosts(name) || is.Kind != kind:
		return false
	case kind == "remove":
		return relation == "" && is.Relation == secret.NoRelation
	case kind != "end" && kind != "subordinate" || relation != strconv.Itoa(is.Relation) || is.Relation < 0:
		return false
	}

	r, _ := a.relation(relation)
	return r.has(serviceOf(name))
}

// maxBlob is the largest blob that an agent writes, in bytes.
const maxBlob = 64 << 20

// headsBlob allows a write that begins, completes or touches a blob. A writer may correct the size that another writer
// has recorded, as long as the blob is not complete. A blob may be completed once its chunks have its sum.
func headsBlob(a *ask) bool {
	before, _ := decode[blobHead](a.old)
	after, ok := decode[blobHead](a.new)
	isSum := len(a.vars["sum"]) == 64 && strings.Trim(a.vars["sum"], "0123456789abcdef") == ""
	switch {
	case !ok || !a.isPresent() || !isSum || after.Size < 0 || after.Size > maxBlob:
		return false
	case before.Complete:
		return after.Complete && before.Size == after.Size
	}

	return !after.Complete || a.hasChunks(a.vars["sum"], after.Size)
}

// hasChunks reports whether the chunks of a blob are there, and have that sum and size.
func (a *ask) hasChunks(sum string, size int64) bool {
	hash := sha256.New()
	read := int64(0)
	for n := int64(0); n*huge < size; n++ {
		chunk := a.after(chunkKey(sum, n))
		if chunk == nil {
			return false
		}
		hash.Write(chunk)
		read += int64(len(chunk))
	}

	return read == size && hex.EncodeToString(hash.Sum(nil)) == sum
}

func chunkKey(sum string, n int64) string { return fmt.Sprintf("blobs/%s/%04d", sum, n) }

// writesBlob allows the chunks of a blob that was begun. A chunk that exists may only be written with the same bytes.
func writesBlob(a *ask) bool {
	head, there := load[blobHead](a.Placement, "blob-heads/"+a.vars["sum"])
	n, err := strconv.ParseInt(a.vars["chunk"], 10, 64)
	if !there || !a.isPresent() || err != nil || fmt.Sprintf("%04d", n) != a.vars["chunk"] || n*huge >= head.Size {
		return false
	}
	return a.old == nil && !head.Complete || a.old != nil && bytes.Equal(a.old, a.new)
}
