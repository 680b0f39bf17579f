package access

import (
	"cmp"
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

// The limits of values, in bytes. They leave room for members that newer binaries add.
const (
	small  = 4 << 10   // an index, a head, a number
	medium = 64 << 10  // a record with a message
	large  = 128 << 10 // settings or a secret's content up to 64 KiB, a log's batch, a secret with 2,000 revisions or consumers
	huge   = 512 << 10 // a chunk of a blob; an action with its progress and output
)

// rows returns the table. A unit belongs to the machine that its record names, which no agent can change.
//
// A pattern that ends with a slash matches prefixes. A list or a watch of a prefix shows only the keys that
// the agent can get. Only operators can list and watch a prefix without a row.
var rows = sync.OnceValue(func() []*row {
	all := table()
	for _, r := range all {
		r.segments = parse(r.pattern)
	}
	return all
})

// table returns a new copy of the table. rows parses its patterns.
func table() []*row {
	return []*row{
		{pattern: keys.Format, get: anybody, why: "only operators set the format of the store"},
		{pattern: keys.Environment, get: anybody, watch: anybody, show: withoutProviderSettings,
			why: "only operators change the settings and choose the binary that agents run"},
		{pattern: keys.CopyLock, get: anybody, why: "only operators copy a model"},
		{pattern: keys.Moved, get: anybody, why: "only operators move a model"},
		{pattern: keys.PartialCopy, get: anybody, why: "only operators copy a model"},
		{pattern: keys.Provisioner, why: "only operators and the provisioner read the provisioner's errors"},

		{pattern: "presence/machine-{machine}", max: medium, shape: objectOf[presenceShape], get: ownMachine, lease: presentMachine,
			why: "a machine can use only the presence record of its own agent, and can write it only under a lease"},
		{pattern: "presence/unit-{tag}", max: medium, shape: objectOf[presenceShape], get: peer("tag"), lease: own("tag"),
			why: "a machine can write only the presence records of its own units, under a lease, and can read only those of units of its applications"},
		{pattern: "claims/machine-{machine}", record: true, max: medium, shape: objectOf[claimShape], get: ownMachine, watch: ownMachine, put: claims,
			why: "a machine can use only its own claim, and each change must raise the epoch"},
		{pattern: keys.Leader("provisioner"), get: anybody,
			why: "provisioners use the store directly; agents can only read which provisioner leads"},
		{pattern: "leaders/services/{service}", max: medium, shape: objectOf[presenceShape], get: seesLeader, watch: service, del: resigns, lease: takesLead,
			why: "a machine can make only its own unit the leader of the unit's application, and only if no unit on another machine leads it"},
		{pattern: "leaders/{rest}", why: "agents can lead only the applications of their own units"},

		{pattern: "charms/{charm}", get: charm,
			why: "a machine can read only the charms of its own units; only operators add charms"},
		{pattern: "tools/{name}", get: anybody, why: "agents can only read binaries; only operators add them"},

		{pattern: "services/{service}", get: seesService, watch: service,
			why: "only operators change applications; a machine without classic charms can read only its own applications and related applications"},
		{pattern: "services/{service}/", watch: service, why: "a machine can watch only its own applications"},
		{pattern: "services/{service}/config", get: service,
			why: "only operators set the options of an application, and only its units can read them"},
		{pattern: "services/{service}/status", max: medium, shape: objectOf[statusShape], get: service, put: leads,
			why: "only the leader sets the status of an application, and only its units can read it"},
		{pattern: "services/{service}/upgrade", get: service, why: "only operators upgrade an application, and only its units can read the upgrade"},
		{pattern: "services/{service}/leader-settings", max: large, shape: objectOf[settingsShape], get: service, put: refers(leads),
			why: "only the leader writes the leader settings of an application, and only its units can read them"},
		{pattern: "services/{service}/relations/", list: seesRelations,
			why: "a machine without classic charms can list only the relations of its own applications"},
		{pattern: "services/{service}/relations/{relation}", get: seesRelations,
			why: "only operators add relations; a machine without classic charms can read only those of its own applications"},
		{pattern: "services/{service}/secrets", record: true, max: medium, shape: objectOf[secretIndex], get: service, put: listsServiceSecrets,
			why: "only the leader lists the secrets that it creates for an application, and only operators list the secrets that they grant to it"},

		{pattern: "units/{unit}", record: true, max: medium, shape: objectOf[unitShape], get: seesUnit, watch: unitOrGone("unit"), put: changesUnit,
			why: "a machine can change only the charm, status and workload of its own units, and clear their resolved marks; it can mark only a dying unit as dead, and only a subordinate that no relation holds as dying"},
		{pattern: "units/{service}/", list: seesUnits,
			why: "a machine can list only the units of its own applications and of related applications"},
		{pattern: "units/{unit}/", watch: unitOrGone("unit"), why: "a machine can watch only the records of its own units"},
		{pattern: "units/{unit}/ports", max: medium, shape: listOf[portShape], get: own("unit"), put: unit("unit"), del: unit("unit"),
			why: "a unit can open and close only its own ports"},
		{pattern: "units/{unit}/actions", max: small, shape: objectOf[queueShape], get: own("unit"), put: listsActions,
			why: "a machine can change only the action lists of its own units, and can add only a unit's own actions to its list"},
		{pattern: "units/{unit}/debug", get: own("unit"), del: unit("unit"),
			why: "only operators start debug sessions; a machine can end only the sessions of its own units"},
		{pattern: "units/{unit}/secrets", record: true, max: medium, shape: objectOf[secretIndex], get: seesSecrets, put: listsSecrets,
			why: "a unit can list only the secrets that it creates or reads; an owner can change the list of another unit only to drop a secret that it removes"},
		{pattern: "units/{unit}/storage", max: medium, shape: listOf[string], get: own("unit"), put: listsStorage, del: listsStorage,
			why: "a machine can use only the storage lists of its own units, and a list must name exactly the storage that its unit has"},
		{pattern: "units/{unit}/state", max: large, shape: objectOf[settingsShape], get: own("unit"), put: refers(unit("unit")),
			why: "a machine can read and write only the state of its own units"},
		{pattern: "units/{unit}/restored", max: medium, shape: objectOf[restoredShape], get: own("unit"), put: replaces("unit"), del: unit("unit"),
			why: "only the agent of a restored unit records how the unit's directory differs from the backup"},

		{pattern: "actions/{n}", record: true, max: huge, shape: objectOf[actionShape], get: action, watch: action, put: refers(runsAction), del: forgetsAction,
			why: "only operators request actions of a charm; a machine can request commands only for its own units, and record progress and results only for them"},
		{pattern: "resources/{service}/{name}", get: service, why: "only operators attach resources to an application, and only its units can read them"},

		{pattern: "secrets/{id}", record: true, max: large, shape: objectOf[secretShape], get: seesSecret, watch: seesSecret, put: changesSecret, del: removesSecret,
			why: "only the owner changes a secret: a unit, or the leader for its application; another machine with access can only record its own units as readers, and prune revisions; nobody can remove readers on other machines"},
		{pattern: "secret-contents/{id}/{revision}", max: large, shape: objectOf[sealedShape], get: readsSecret, put: refers(sealsSecret), del: prunesSecret,
			why: "only the owner writes the content of a secret, and only units with access to the secret can read it"},
		{pattern: "secret-keys/{rest}", why: "no agent can use the keys that encrypt secrets"},

		{pattern: "storage/{storage}", record: true, max: small, shape: objectOf[storageShape], get: storageHere, watch: storageHere, put: changesStorage, del: endsStorage,
			why: "a machine can create, bind, release and remove only storage that is on it, for its own units"},

		{pattern: "machines/{machine}", record: true, max: medium, shape: objectOf[machineShape], get: ownMachine, watch: ownMachine, put: changesMachine,
			why: "in its own record, a machine can only add missing addresses, change its binary, set its status to running, clear an error, and mark itself as dead once it is dying"},
		{pattern: "machines/{machine}/", watch: ownMachine, why: "a machine can watch only its own records"},
		{pattern: "machines/{machine}/storage", max: medium, shape: objectOf[machineStorageShape], get: ownMachine, put: listsMachineStorage, del: listsMachineStorage,
			why: "a machine can use only its own list of storage, and the list must name exactly the storage on the machine"},
		{pattern: "machines/{machine}/units/", list: ownMachine, why: "a machine can list only its own units"},
		{pattern: "machines/{machine}/units/{unit}", get: ownMachine,
			why: "only operators and the provisioner place units"},
		{pattern: "spares/{machine}",
			why: "only operators and the provisioner record which machines are unused"},
		{pattern: "first-units/{machine}",
			why: "only operators and the provisioner record which machines are unused"},

		{pattern: "relations/{relation}", get: seesRelation,
			why: "only operators add relations, and only operators and the provisioner end them"},
		{pattern: "relations/{relation}/members/", list: relationOrGone,
			why: "a machine without classic charms can list only the members of its own applications' relations"},
		{pattern: "relations/{relation}/members/{service}/", list: relationOrGone, watch: relationOrGone,
			why: "a machine without classic charms can list only the members of its own applications' relations"},
		{pattern: "relations/{relation}/members/{member}", max: small, shape: objectOf[memberShape], get: seesRelation, put: entersRelation, del: unit("member"),
			why: "a unit can join and leave only the relations of its own application"},
		{pattern: "relations/{relation}/settings/{member}", max: large, shape: objectOf[settingsShape], get: readsSettings, put: refers(writesSettings),
			why: "a unit can write only its own settings; only units in the relation can read them, and in container scope only units with the same principal"},
		{pattern: "relations/{relation}/apps/{service}", max: large, shape: objectOf[settingsShape], get: readsApp, watch: relationOrGone, put: refers(writesApp),
			why: "only the leader writes its application's settings; only the leader, units at the other end and units in a peer relation can read them"},

		{pattern: "uniters/{unit}/", list: unitOrGone("unit"), why: "a machine can use only the records of its own units' agents"},
		{pattern: "uniters/{unit}/op", max: medium, shape: objectOf[opShape], get: own("unit"), put: unit("unit"), del: unit("unit"),
			why: "a machine can use only the records of its own units' agents"},
		{pattern: "uniters/{unit}/workflow", max: medium, shape: objectOf[workflowShape], get: own("unit"), put: progresses,
			why: "a machine can use only the records of its own units' agents; an installed unit cannot become uninstalled, since its machine would then count as unused"},
		{pattern: "uniters/{unit}/relations/{relation}", max: medium, shape: objectOf[relationStateShape], get: own("unit"), put: tracksRelation, del: unit("unit"),
			why: "a machine can use only the records of its own units' agents, and can add a record only for a relation of the unit's application"},
		{pattern: "uniters/{unit}/relations/{relation}/{member}", max: small, shape: objectOf[memberStateShape], get: own("unit"), put: tracksMember, del: unit("unit"),
			why: "a machine can use only the records of its own units' agents, and can add a record only for a unit of an application in the relation"},
		{pattern: "uniters/{unit}/services/{relation}/{service}", max: small, shape: objectOf[memberStateShape], get: own("unit"), put: tracksService, del: unit("unit"),
			why: "a machine can use only the records of its own units' agents, and can add a record only for an application in the relation"},

		{pattern: "history/{unit}/", list: unitOrGone("unit"),
			why: "a machine can list only the hook history of its own units"},
		{pattern: "history/{unit}/{slot}", max: medium, shape: objectOf[hookRunShape], get: own("unit"), put: notesHook,
			why: "a machine can record only hooks of its own units, each in the slot of its number, and can replace only the record of an older hook"},

		{pattern: "logs/machine-{machine}", max: small, shape: objectOf[logHeadShape], get: ownMachine, put: logsHead,
			why: "a machine can log only for itself and its own units"},
		{pattern: "logs/{unit}", max: small, shape: objectOf[logHeadShape], get: own("unit"), put: logsHead,
			why: "a machine can log only for itself and its own units"},
		{pattern: "log/machine-{machine}/{seq}", max: large, shape: objectOf[logBatchShape], get: ownMachine, put: logsNext, del: dropsOldest,
			why: "a machine can only add lines at the end of its own logs, and remove the oldest batch of a full log"},
		{pattern: "log/{unit}/{seq}", max: large, shape: objectOf[logBatchShape], get: own("unit"), put: logsNext, del: dropsOldest,
			why: "a machine can only add lines at the end of its own logs, and remove the oldest batch of a full log"},

		{pattern: keys.MachineCounter, why: "only operators add machines"},
		{pattern: keys.RelationCounter, why: "only operators add relations"},
		{pattern: keys.ActionCounter, max: small, shape: number, get: anybody, put: gives(keys.Actions),
			why: "the counter can only grow by one for each command that the same commit adds"},
		{pattern: keys.StorageCounter, max: small, shape: number, get: anybody, put: gives(keys.Storages),
			why: "the counter can only grow by one for each storage that the same commit adds"},
		{pattern: "counters/units/{service}", why: "only operators and the provisioner add units"},

		{pattern: "requests/{unit}/{what}", max: small, shape: objectOf[requestShape], get: own("unit"), put: requests,
			why: "a machine can request changes only for its own units and their relations; only the provisioner removes a request"},

		{pattern: "gateway-leases/{who}/{id}", why: "only a gateway uses the records of lease owners"},

		{pattern: "blob-heads/{sum}", quiet: true, max: small, shape: objectOf[blobHeadShape], get: anybody, put: touchesBlob,
			why: "a complete blob must match its checksum and cannot change, and the time of its last use can be set only to the present"},
		{pattern: "blobs/{sum}/{chunk}", raw: true, quiet: true, max: huge, shape: anyBytes, get: anybody, put: writesChunk,
			why: "a machine can write only chunks of a blob that has a head and is not complete yet"},
	}
}

// anybody allows all agents.
func anybody(*ask) bool { return true }

// ownMachine allows the machine that the key names.
func ownMachine(a *ask) bool { return a.vars["machine"] == a.me }

// presentMachine allows the machine that the key names, unless it was removed.
func presentMachine(a *ask) bool { return ownMachine(a) && a.isPresent() }

// unit allows the machine of the unit that the key names, unless the unit is dead.
func unit(name string) rule { return func(a *ask) bool { return a.hosts(a.vars[name]) } }

// own allows the machine of the unit that the key names, even if the unit is dead.
func own(name string) rule { return func(a *ask) bool { return a.has(a.vars[name]) } }

// unitOrGone allows the machine of the unit that the key names, and all machines if the unit is gone. It is
// for lists and watches, which show only that such a unit is gone.
func unitOrGone(name string) rule {
	return func(a *ask) bool { return a.has(a.vars[name]) || a.isGone(a.vars[name]) }
}

// peer allows the machines of the unit that the key names and of other units of its service.
func peer(name string) rule {
	return func(a *ask) bool { return a.has(a.vars[name]) || a.hasService(serviceOf(a.vars[name])) }
}

// replaces allows the machine of the unit that the key names to change an existing record.
func replaces(name string) rule {
	return func(a *ask) bool { return a.old != nil && a.hosts(a.vars[name]) }
}

// refers adds a condition to the rule may, for records that can name a blob: a new blob must be complete
// after the commit. Otherwise readers of the record would find the store damaged.
func refers(may rule) rule {
	return func(a *ask) bool {
		was, _ := decode[blobReference](a.old)
		is, ok := decode[blobReference](a.new)
		return ok && may(a) && a.isComplete(was.Blob, is.Blob) && a.isComplete(was.Output.Blob, is.Output.Blob)
	}
}

// isComplete reports whether the blob with the sum is complete after the commit. It does not check a blob that
// the record named before, with the sum old. It returns true if sum is empty, since the record names no blob.
func (a *ask) isComplete(old, sum string) bool {
	if sum == old || sum == "" {
		return true
	}
	head, _ := decode[blobHead](a.after(BlobHeads + sum))
	return head.Complete
}

// service allows machines with a unit of the service that the key names.
func service(a *ask) bool { return a.hasService(a.vars["service"]) }

// leads allows the machine of the unit that leads the service that the key names.
func leads(a *ask) bool { return a.hostsLeader(a.vars["service"]) }

// charm allows machines with a unit of the charm that the key names.
func charm(a *ask) bool { return a.runsCharm(a.vars["charm"]) }

// maxEpoch is greater than the epoch of any claim in use; the epoch of a restored claim is the Unix time.
// From maxEpoch on, an epoch can only grow by one, so that a machine cannot use up all epochs.
const maxEpoch = 1 << 40

// claims allows a machine to change its own claim if the epoch grows. Above maxEpoch, the epoch can grow only by
// one.
func claims(a *ask) bool {
	before, _ := decode[claimRecord](a.old)
	after, ok := decode[claimRecord](a.new)
	leavesEpochs := after.Epoch == before.Epoch+1 || after.Epoch <= maxEpoch
	return ok && presentMachine(a) && after.Epoch > before.Epoch && leavesEpochs
}

// takesLead allows a machine to make one of its units the leader of the unit's service. The rule resigns must
// allow the machine to end the present leadership. A dying unit can win a campaign that it began before, but
// a dead one cannot.
func takesLead(a *ask) bool {
	after, ok := decode[presenceRecord](a.new)
	return ok && serviceOf(after.Unit) == a.vars["service"] && a.hosts(after.Unit) && resigns(a)
}

// resigns allows a machine to end the leadership of a unit on it, and of a unit that is gone. If no unit leads,
// resigns allows every machine, and takesLead decides with its other conditions.
func resigns(a *ask) bool {
	if a.old == nil {
		return true
	}
	before, ok := decode[presenceRecord](a.old)
	return ok && (a.has(before.Unit) || a.isGone(before.Unit))
}

// seesLeader allows machines with a unit of the service. It also allows all machines if the leader is gone,
// since a machine must be able to end the leadership of its last unit.
func seesLeader(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isGone(a.leader(s))
}

// seesService allows machines with a unit of the service or of a related one, and machines with classic
// charms.
func seesService(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isRelated(s) || a.hasClassicCharm()
}

// seesRelations allows machines with a unit of the service, and machines with classic charms.
func seesRelations(a *ask) bool { return a.hasService(a.vars["service"]) || a.hasClassicCharm() }

// listsServiceSecrets allows the leader's machine to change the service's own secrets in the list. It can add
// only secrets that the same commit makes. It cannot change the secrets that operators have granted.
func listsServiceSecrets(a *ask) bool {
	s := a.vars["service"]
	before, _ := decode[secretIndex](a.old)
	after, ok := decode[secretIndex](a.new)
	return ok &&
		a.hostsLeader(s) &&
		slices.Equal(before.Granted, after.Granted) &&
		(a.old == nil || a.changesOnly("owned")) &&
		a.areMade(added(before.Owned, after.Owned), secret.Owner{Service: s})
}

// areMade reports whether the commit makes all of the secrets, with that owner. This keeps an owner from listing
// existing secrets as its own.
func (a *ask) areMade(ids []string, owner secret.Owner) bool {
	return !slices.ContainsFunc(ids, func(id string) bool {
		r, ok := loadSecret(a.after(keys.Secret(id)), id)
		return !ok || a.get(keys.Secret(id)) != nil || r.Owner != owner
	})
}

// seesUnit allows the unit's machine, machines with a unit of its service or of a related one, and machines
// with classic charms.
func seesUnit(a *ask) bool {
	service := serviceOf(a.vars["unit"])
	return a.has(a.vars["unit"]) || a.hasService(service) || a.isRelated(service) || a.hasClassicCharm()
}

// seesUnits allows machines with a unit of the service or of a related one. It also allows all machines if
// the service is gone, so that they see that the list is empty.
func seesUnits(a *ask) bool {
	s := a.vars["service"]
	return a.hasService(s) || a.isRelated(s) || a.get(keys.Service(s)) == nil
}

// changesUnit reports whether the machine can write this unit's record: change its charm, status and
// workload, clear its resolved marks, and advance its life. A dying unit can become dead, and an alive
// subordinate that no relation holds can become dying.
func changesUnit(a *ask) bool {
	name := a.vars["unit"]
	u, _ := decode[unitRecord](a.new)

	mayAdvance := func(before, after string) bool {
		switch {
		case before == dying && after == dead:
			return true
		case before == alive && after == dying:
			return u.Principal != "" && !a.isHeld(name, u.Principal)
		}
		return false
	}

	// The member active-with is the charm that the unit ran when it last set the status active.
	return a.hosts(name) &&
		a.changesOnly("charm", "status", "active-with", "workload", "life", "resolved", "resolved-relations") &&
		a.areKeptOrCleared("resolved") &&
		a.isKeptOrReduced("resolved-relations") &&
		a.isKeptOr("charm", func(before, after string) bool { return a.deploys(serviceOf(name), before, after) }) &&
		a.isKeptOr("active-with", func(_, after string) bool { return after == u.Charm }) &&
		a.isKeptOr("life", mayAdvance)
}

// deploys reports whether a unit can change from one charm to another, given by the URLs before and after. It
// can change to its service's charm. Before it runs that charm, it can also change to the charms of the
// service's last upgrade. It cannot go back from its service's charm, since an older charm can have more
// rights.
func (a *ask) deploys(service, before, after string) bool {
	if a.get(keys.Charm(after)) == nil {
		return false // there is no such charm
	}
	s, _ := load[serviceRecord](a.Placement, keys.Service(service))
	if after == s.Charm {
		return true
	}

	upgrade, _ := load[upgradeRecord](a.Placement, keys.Upgrade(service))
	return before != s.Charm && (after == upgrade.Before || after == upgrade.Charm)
}

// isHeld reports whether a relation holds a subordinate to its principal: an alive relation of container scope
// between their services.
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

// seesSecrets allows the unit's machine, and machines that manage a secret which the unit has read.
func seesSecrets(a *ask) bool { return a.has(a.vars["unit"]) || a.isReadBy(a.vars["unit"]) }

// listsSecrets reports whether the machine can write this unit's list of secrets. A machine that does not host
// the unit can only drop secrets that it manages and that the commit removes.
func listsSecrets(a *ask) bool {
	name := a.vars["unit"]
	before, _ := decode[secretIndex](a.old)
	after, ok := decode[secretIndex](a.new)
	if !ok || !slices.Equal(before.Granted, after.Granted) {
		return false
	}
	if a.old != nil && !a.changesOnly("owned", "consumed") {
		return false
	}

	if !a.hosts(name) {
		return a.dropsRemoved(before, after)
	}

	// The unit can add secrets that the same commit makes, and secrets whose records name the unit as a
	// consumer.
	return a.areMade(added(before.Owned, after.Owned), secret.Owner{Unit: name}) &&
		!slices.ContainsFunc(added(before.Consumed, after.Consumed), func(id string) bool {
			r, _ := loadSecret(a.after(keys.Secret(id)), id)
			_, reads := r.Consumers[name]
			return !reads
		})
}

// dropsRemoved reports whether the list of a unit on another machine changes only as follows: the list of
// consumed secrets loses at least one secret, and the commit removes each of the lost secrets, which the
// machine manages. listsSecrets has checked the list's other members.
func (a *ask) dropsRemoved(before, after secretIndex) bool {
	lost := added(after.Consumed, before.Consumed)
	return slices.Equal(before.Owned, after.Owned) &&
		len(added(before.Consumed, after.Consumed)) == 0 &&
		len(lost) > 0 &&
		// All other entries stay, also those that occur twice.
		len(after.Consumed) == len(before.Consumed)-len(lost) &&
		!slices.ContainsFunc(lost, func(id string) bool { return !a.isRemoving(id) })
}

// isRemoving reports whether the commit removes a secret that the machine manages.
func (a *ask) isRemoving(id string) bool {
	r, ok := loadSecret(a.get(keys.Secret(id)), id)
	return ok && a.manages(r) && a.after(keys.Secret(id)) == nil
}

// The limits of storages of a unit and on a machine. Package state has the same limits for operators.
const (
	maxUnitStorages    = 64
	maxMachineStorages = 512
)

// listsStorage allows the unit's machine to add storage that the unit has after the commit, and to remove
// storage that it does not have. So the list is complete when a unit is removed.
func listsStorage(a *ask) bool {
	var before, after []string
	if !decodesInto(a.old, &before) || !decodesInto(a.new, &after) {
		return false
	}

	unit := a.vars["unit"]
	isOfUnit := func(s storageRecord) bool { return s.Unit == unit }
	return a.hosts(unit) && a.listsAll(before, after, maxUnitStorages, isOfUnit)
}

// listsAll reports whether a list of storage can change from before to after. After the commit, all added
// storage must belong in the list, and no removed storage may belong in it. belongs decides that from the
// storage's record. The list can grow only to the length limit.
func (a *ask) listsAll(before, after []string, limit int, belongs func(s storageRecord) bool) bool {
	mustBeListed := func(id string) bool {
		s, ok := decode[storageRecord](a.after(keys.Storage(id)))
		return ok && belongs(s)
	}
	mustNotBeListed := func(id string) bool { return !mustBeListed(id) }

	return len(after) <= max(limit, len(before)) &&
		!slices.ContainsFunc(added(before, after), mustNotBeListed) &&
		!slices.ContainsFunc(added(after, before), mustBeListed)
}

// isInUnit reports whether the storage is in the unit's list after the commit.
func (a *ask) isInUnit(unit, id string) bool {
	list, _ := decode[[]string](a.after(keys.UnitStorage(unit)))
	return slices.Contains(list, id)
}

// isOnMachine reports whether the storage is in the machine's list after the commit.
func (a *ask) isOnMachine(machine, id string) bool {
	list, _ := decode[machineStorage](a.after(keys.MachineStorage(machine)))
	return slices.Contains(list.All, id)
}

// maxQueue bounds each list of a unit's actions. Package actions keeps as many that wait, and fewer that have ended.
const maxQueue = 64

// listsActions allows the unit's machine to change the unit's lists of actions. The machine can add only the
// unit's own actions, since the oldest ended actions in a list are removed when later actions end. No list can grow
// above maxQueue actions.
func listsActions(a *ask) bool {
	before, _ := decode[queueShape](a.old)
	after, ok := decode[queueShape](a.new)
	unit := a.vars["unit"]
	if !ok || !a.hosts(unit) {
		return false
	}

	isOthers := func(n int) bool {
		r, _ := decode[actionRecord](a.after(keys.Action(n)))
		return r.Unit != unit
	}
	known := slices.Concat(before.Waiting, before.Ended, before.Cancel)
	isAllowed := func(before, after []int) bool {
		return len(after) <= max(maxQueue, len(before)) && !slices.ContainsFunc(added(known, after), isOthers)
	}
	return isAllowed(before.Waiting, after.Waiting) &&
		isAllowed(before.Ended, after.Ended) &&
		isAllowed(before.Cancel, after.Cancel)
}

// action allows the machine of the action's unit, and all machines if the action does not exist.
func action(a *ask) bool {
	n, _ := strconv.Atoi(a.vars["n"])
	value := a.get(keys.Action(n))
	if value == nil {
		return true
	}

	r, _ := decode[actionRecord](value)
	return a.has(r.Unit)
}

const pending = "pending"

// runsAction reports whether the machine can write this action: request a command for a unit on it, or record
// the progress and result of an action of such a unit.
func runsAction(a *ask) bool {
	is, ok := decode[actionRecord](a.new)
	if !ok {
		return false
	}

	// A new action must be a command. Only operators can request actions of the charm.
	if a.old == nil {
		return a.hosts(is.Unit) &&
			is.Name == "" &&
			is.Status == pending &&
			a.isNext(keys.ActionCounter, a.vars["n"])
	}

	was, _ := decode[actionRecord](a.old)
	return a.hosts(was.Unit) &&
		is.Status != pending &&
		a.changesOnly("status", "started", "run", "completed", "progress", "message", "code", "results", "output")
}

// forgetsAction allows the machine of the action's unit to remove an action that has ended.
func forgetsAction(a *ask) bool {
	was, ok := decode[actionRecord](a.old)
	return ok && a.hosts(was.Unit) && was.Status != pending && was.Status != "running"
}

// seesSecret allows machines that manage the secret, can read it, or have read it before. A dead unit that owns
// the secret, or leads the service that owns it, also counts. seesSecret allows all machines if the secret does
// not exist.
func seesSecret(a *ask) bool {
	value := a.get(keys.Secret(a.vars["id"]))
	if value == nil {
		return true
	}

	r, ok := loadSecret(value, a.vars["id"])
	return ok && (a.manages(r) || a.reads(r) || a.consumes(r) || a.owns(r))
}

// readsSecret allows machines that manage the secret or can read it.
func readsSecret(a *ask) bool {
	r, ok := loadSecret(a.get(keys.Secret(a.vars["id"])), a.vars["id"])
	return ok && (a.manages(r) || a.reads(r))
}

// changesSecret reports whether the machine can write this secret record: create it, change it as its
// manager, or, as a reader, record and remove its own units as consumers and prune revisions.
func changesSecret(a *ask) bool {
	id := a.vars["id"]
	is, ok := loadSecret(a.new, id)
	if !ok {
		return false
	}

	// Create the secret. If a removed secret with this id has left contents, they belong to a different
	// owner, so the id cannot be used again.
	if a.old == nil {
		empty := secret.Record{} // so that all consumers and grants count as new
		return isSecretID(id) &&
			a.isOwnerHere(is) &&
			a.addsOwnConsumersOnly(empty, is) &&
			a.grantsRelatedOnly(empty, is) &&
			len(a.list(keys.ContentsOfSecret(id))) == 0
	}

	// No change can affect the owner, the origin or the time of creation.
	was, ok := loadSecret(a.old, id)
	if !ok || !a.areKept("owner", "origin", "created") {
		return false
	}

	// Nobody can change the consumers on other machines.
	if !a.addsOwnConsumersOnly(was, is) || !a.removesOwnConsumersOnly(was, is) {
		return false
	}

	// The manager can change everything else. A reader can also prune revisions.
	if a.manages(was) {
		return a.grantsRelatedOnly(was, is)
	}
	return a.reads(was) && a.changesOnly("consumers", "revisions") && isPruned(was, is)
}

// isSecretID reports whether an agent can make a secret with the id. It cannot use the well-known id of the
// operators' credential, since trusted services read the secret with that id.
func isSecretID(id string) bool {
	parsed, err := secret.ParseID(id)
	return err == nil && parsed == id && id != secret.CredentialID
}

// isOwnerHere reports whether the secret's owner is a unit on the machine, or a service that a unit on the
// machine leads. The machine can make such a secret, but manages only those that the owner's list names.
func (a *ask) isOwnerHere(r secret.Record) bool {
	if r.Owner.Unit != "" {
		return r.Owner.Service == "" && a.hosts(r.Owner.Unit)
	}
	return r.Owner.Service != "" && a.hostsLeader(r.Owner.Service)
}

// maxGrants limits a secret's grants. It allows one for each relation of a large application.
const maxGrants = 512

// grantsRelatedOnly reports whether each new grant is for a service, or one of its units, in a relation with the
// owner's service. It accepts a relation that no longer exists, since its id is never used again. It returns false if
// the number of grants grows above maxGrants.
func (a *ask) grantsRelatedOnly(was, is secret.Record) bool {
	if len(is.Grants) > max(maxGrants, len(was.Grants)) {
		return false
	}

	owner := cmp.Or(is.Owner.Service, serviceOf(is.Owner.Unit))
	isForbidden := func(g secret.Grant) bool {
		r, exists := a.relation(strconv.Itoa(g.Relation))
		// Only grants by operators are without a relation.
		if g.Relation < 0 {
			return true
		}

		if !exists && !a.hadRelation(g.Relation) {
			return true
		}
		isBetween := r.has(owner) && r.has(g.Service)
		hasOtherUnit := g.Unit != "" && serviceOf(g.Unit) != g.Service // a unit of a different service
		return exists && !isBetween || hasOtherUnit
	}
	return !slices.ContainsFunc(added(was.Grants, is.Grants), isForbidden)
}

// maxLabel limits a consumer's label, in bytes, since it takes space in the owner's record.
const maxLabel = 1 << 10

// addsOwnConsumersOnly reports whether all consumers that are new or have changed are units on the machine, and have
// labels of at most maxLabel bytes. If a machine could add units of other machines, it could read their lists of
// secrets.
func (a *ask) addsOwnConsumersOnly(was, is secret.Record) bool {
	for unit, c := range is.Consumers {
		before, existed := was.Consumers[unit]
		if existed && before == c {
			continue
		}
		if !a.hosts(unit) || len(c.Label) > maxLabel {
			return false
		}
	}
	return true
}

// removesOwnConsumersOnly reports whether every removed consumer is a unit on the machine.
func (a *ask) removesOwnConsumersOnly(was, is secret.Record) bool {
	for unit := range was.Consumers {
		if _, isKept := is.Consumers[unit]; !isKept && !a.hosts(unit) {
			return false
		}
	}

	return true
}

// isPruned reports whether the revisions stay the same, except for removed revisions that no consumer reads.
// Revisions can only be removed if the owner has set AutoPrune.
func isPruned(was, is secret.Record) bool {
	// The consumers after the change decide which of the previous revisions no consumer reads. All grants
	// count as valid, so that no consumer with a grant loses the revision that it reads.
	candidates := is
	candidates.Revisions = was.Revisions
	untracked := candidates.Untracked(func(string, secret.Grant) bool { return true })

	for n, before := range was.Revisions {
		after, isKept := is.Revisions[n]
		if isKept && !isSameRevision(after, before) {
			return false
		}
		mayRemove := was.AutoPrune && slices.Contains(untracked, n)
		if !isKept && !mayRemove {
			return false
		}
	}

	// No revision was added.
	return len(is.Revisions) <= len(was.Revisions)
}

// isSameRevision reports whether two revisions are the same. It compares times with Equal, since == also
// compares their locations.
func isSameRevision(a, b secret.Revision) bool {
	return a.Created.Equal(b.Created) && a.Expires.Equal(b.Expires) && a.DueAt.Equal(b.DueAt) && a.Obsolete == b.Obsolete
}

// removesSecret allows machines that manage the secret.
func removesSecret(a *ask) bool {
	r, ok := loadSecret(a.old, a.vars["id"])
	return ok && a.manages(r)
}

// sealsSecret allows machines that manage the secret, or make it in the same commit, to write the content of
// a revision. The record must have the revision after the commit.
func sealsSecret(a *ask) bool {
	id := a.vars["id"]
	is, ok := loadSecret(a.after(keys.Secret(id)), id)
	n, _ := strconv.Atoi(a.vars["revision"])
	if _, hasRevision := is.Revisions[n]; !ok || !hasRevision {
		return false
	}

	if was, ok := loadSecret(a.get(keys.Secret(id)), id); ok {
		return a.manages(was)
	}
	return a.isOwnerHere(is)
}

// prunesSecret allows machines that manage the secret to remove the content of a revision. A reader can
// remove it if the secret's record does not have the revision after the commit.
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
	_, hasRevision := is.Revisions[n]
	return ok && !hasRevision && a.reads(r)
}

// storageHere allows the machine of the storage, and all machines if the storage does not exist.
func storageHere(a *ask) bool {
	value := a.get(keys.Storage(a.vars["storage"]))
	if value == nil {
		return true
	}

	s, ok := decode[storageRecord](value)
	return ok && s.Machine == a.me
}

// changesStorage reports whether the machine can write this storage record: add new storage for a unit on it,
// or make, bind and release storage on it.
func changesStorage(a *ask) bool {
	is, ok := decode[storageRecord](a.new)
	if !ok || is.Machine != a.me || !a.works() {
		return false
	}
	id := a.vars["storage"]

	// New storage must have the next number, a unit on the machine, and entries in both lists.
	if a.old == nil {
		_, n, _ := strings.Cut(id, "/")
		return a.hosts(is.Unit) &&
			is.Life == alive &&
			is.State == pending &&
			a.isNext(keys.StorageCounter, n) &&
			a.isInUnit(is.Unit, id) &&
			a.isOnMachine(a.me, id)
	}

	// Storage that was made stays marked as made, since an agent can remove storage that was never made. When
	// a unit gives storage back, the same commit must remove it from the unit's list. An old record that does
	// not decode names no machine, so the machine cannot change it.
	was, _ := decode[storageRecord](a.old)
	return was.Machine == a.me &&
		(was.Unit == "" || a.hosts(was.Unit)) &&
		a.changesOnly("made", "bound", "unit", "state", "location", "since") &&
		a.areKeptOrCleared("unit") &&
		(is.Made || !was.Made) &&
		(is.Unit == was.Unit || !a.isInUnit(was.Unit, id))
}

// endsStorage allows the machine of the storage to remove its record if it was never made, or if it is being
// removed and no unit has it. The commit must also remove it from the lists.
func endsStorage(a *ask) bool {
	was, ok := decode[storageRecord](a.old)
	if !ok || was.Machine != a.me || !a.works() {
		return false
	}

	id := a.vars["storage"]
	isReleased := was.Life != alive && was.Unit == ""
	isEndable := !was.Made || isReleased
	if !isEndable || a.isOnMachine(a.me, id) {
		return false
	}

	return was.Unit == "" || a.hosts(was.Unit) && !a.isInUnit(was.Unit, id)
}

// changesMachine reports whether the machine can write its own record: set its addresses, its binary and the
// status running, clear an error, and end itself once it is dying.
func changesMachine(a *ask) bool {
	return ownMachine(a) &&
		a.works() &&
		a.changesOnly("status", "message", "attempts", "retry-at", "addresses", "tools", "life") &&
		a.areKeptOrCleared("message", "attempts", "retry-at") &&
		a.isKeptOr("status", func(_, after string) bool { return after == "running" }) &&
		a.isKeptOr("tools", func(_, after string) bool { return isToolName(after) }) &&
		a.namesHosts() &&
		a.isKeptOr("life", func(before, after string) bool { return before == dying && after == dead })
}

// isToolName reports whether a text can be the name of a binary, VERSION-SHA8.
func isToolName(text string) bool {
	return len(text) <= 100 && strings.Trim(strings.ToLower(text), "0123456789abcdefghijklmnopqrstuvwxyz.+~_-") == ""
}

// namesHosts reports whether each of the machine's addresses is unchanged, or is a valid address where none was
// recorded. Operators and other units connect to these addresses, so a machine cannot replace one that the provider
// has reported.
func (a *ask) namesHosts() bool {
	m, _ := decode[machineShape](a.new)
	before, _ := decode[machineShape](a.old)
	isAllowed := func(before, after string) bool { return after == before || before == "" && isHost(after) }
	return isAllowed(before.Addresses.Private, m.Addresses.Private) &&
		isAllowed(before.Addresses.Public, m.Addresses.Public)
}

// isHost reports whether a text is an IP address, a host name, or empty.
func isHost(text string) bool {
	// Only the zone of an IP address needs the check below: ParseAddr accepts any zone.
	if ip, err := netip.ParseAddr(text); err == nil {
		text = ip.Zone()
	}

	isForbidden := func(c rune) bool {
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
		isDigit := c >= '0' && c <= '9'
		return !isLetter && !isDigit && c != '-' && c != '.' && c != '_'
	}
	const maxHostName = 253
	return len(text) <= maxHostName && !strings.HasPrefix(text, "-") && !strings.ContainsFunc(text, isForbidden)
}

// listsMachineStorage allows the machine to add storage that is on it after the commit, and to remove storage
// that is not. So the list is complete when a machine is removed.
func listsMachineStorage(a *ask) bool {
	before, _ := decode[machineStorage](a.old)
	after, ok := decode[machineStorage](a.new)
	isHere := func(s storageRecord) bool { return s.Machine == a.me }
	return (ok || a.new == nil) && // a list that is deleted counts as empty
		ownMachine(a) &&
		a.works() &&
		a.listsAll(before.All, after.All, maxMachineStorages, isHere)
}

// seesRelation allows machines with a unit of a service in the relation, and machines with classic charms.
func seesRelation(a *ask) bool { return a.isIn(a.vars["relation"]) || a.hasClassicCharm() }

// relationOrGone allows the machines that seesRelation allows, and all machines if the relation is gone. It
// is for lists and watches, which show nothing of a relation that is gone.
func relationOrGone(a *ask) bool {
	id := a.vars["relation"]
	return a.isIn(id) || a.isRelationGone(id) || a.hasClassicCharm()
}

// entersRelation allows a machine to make a unit on it a member of a relation of the unit's service. If the member's
// record names a principal, that must be the unit's true one. For a member, the machine can only change the version.
func entersRelation(a *ask) bool {
	name := a.vars["member"]
	is, ok := decode[memberRecord](a.new)
	if !ok || !a.hosts(name) {
		return false
	}
	if a.old != nil {
		return a.changesOnly("version")
	}

	r, _ := a.relation(a.vars["relation"])
	u, _ := load[unitRecord](a.Placement, keys.Unit(name))
	if !r.has(serviceOf(name)) || r.Life != alive || u.Life != alive {
		return false
	}

	// A unit that is not a subordinate is its own principal. Outside of container scope, the record names none.
	principal := cmp.Or(u.Principal, name)
	return is.Principal == "" || is.Principal == principal
}

// readsSettings allows the member's machine, and machines with a unit in the relation. In container scope, the
// machine must also have the member's principal, unless the member was removed. In a relation that is gone,
// readsSettings allows machines with a unit that was a member.
func readsSettings(a *ask) bool {
	id := a.vars["relation"]
	r, exists := a.relation(id)
	switch {
	case a.has(a.vars["member"]):
		return true
	case !exists:
		return a.isRelationGone(id) && a.wasIn(id)
	case !a.isIn(id):
		return false
	}

	return r.Scope != "container" || a.sharesPrincipal(id, a.vars["member"])
}

// writesSettings allows the member's machine. The first settings also need a relation of the member's service.
// Later ones do not, so that the relation is not read for them, since a hook can write to hundreds of relations.
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

// readsApp allows machines with a unit of the service at the other end, and the machine of the leader. In a
// peer relation, it allows machines with any unit of the service. It allows none if the relation does not exist.
func readsApp(a *ask) bool {
	s := a.vars["service"]
	r, exists := a.relation(a.vars["relation"])
	if !exists {
		return false
	}
	if r.isPeer() && a.hasService(s) {
		return true
	}

	isOtherEnd := func(e endpoint) bool { return e.Service != s && a.hasService(e.Service) }
	return a.hostsLeader(s) || slices.ContainsFunc(r.Endpoints, isOtherEnd)
}

// writesApp allows the machine of the leader, if the service is in the relation.
func writesApp(a *ask) bool {
	r, _ := a.relation(a.vars["relation"])
	return r.has(a.vars["service"]) && a.hostsLeader(a.vars["service"])
}

// progresses allows the unit's machine to write the workflow, but not to clear its charm, nor to make an installed
// unit uninstalled. Otherwise the machine would count as unused after the unit's removal, and another application
// could get it.
func progresses(a *ask) bool {
	before, _ := decode[workflowShape](a.old)
	after, ok := decode[workflowShape](a.new)
	if !ok || !a.hosts(a.vars["unit"]) {
		return false
	}

	keepsCharm := after.Charm != "" || before.Charm == ""
	// Uninstalled is set, and State is not empty, if a storage hook has failed before the install hook.
	isInstalled := before.State != "" && !before.Uninstalled
	staysInstalled := after.State != "" && !after.Uninstalled
	return keepsCharm && (!isInstalled || staysInstalled)
}

// maxSlots is how many runs of hooks of a unit are recorded.
const maxSlots = 50

// notesHook allows the unit's machine to record a hook run in the slot of its number. A record can be replaced
// only by that of a later run. Numbers can be missing, since an agent can die before it records a run.
func notesHook(a *ask) bool {
	slot, _ := strconv.Atoi(a.vars["slot"])
	before, hasRecord := decode[hookRunShape](a.old)
	after, ok := decode[hookRunShape](a.new)
	return ok &&
		slot < maxSlots &&
		a.hosts(a.vars["unit"]) &&
		after.Seq >= 0 && after.Seq%maxSlots == int64(slot) &&
		(!hasRecord || after.Seq > before.Seq)
}

// logSource returns the unit or machine to whose log the key belongs. ok is false if the log belongs to a
// different machine. It is true for a dead unit, since a unit's last lines are logged after its end.
func (a *ask) logSource() (source string, ok bool) {
	if unit := a.vars["unit"]; unit != "" {
		return unit, a.has(unit)
	}
	return "machine-" + a.vars["machine"], presentMachine(a)
}

// maxLogBatches is how many batches a log can have.
const maxLogBatches = 64

// logsHead allows a log of the machine or its units to grow by at most one batch. Its count of lines cannot
// go down. If the log is full, the commit must remove the oldest batch.
func logsHead(a *ask) bool {
	source, own := a.logSource()
	before, _ := decode[logHead](a.old)
	after, ok := decode[logHead](a.new)
	isNextOrSame := after.Batch >= before.Batch && after.Batch <= before.Batch+1
	if !own || !ok || !isNextOrSame || after.Lines < before.Lines {
		return false
	}
	return after.Batch <= maxLogBatches || a.after(keys.LogBatch(source, after.Batch-maxLogBatches)) == nil
}

// logsNext allows a machine to append to the newest batch of a log, and to add the next batch.
func logsNext(a *ask) bool {
	source, own := a.logSource()
	if !own {
		return false
	}

	// Each batch has only one key, with the number in ten digits or more.
	head, _ := load[logHead](a.Placement, keys.LogHead(source))
	seq, err := strconv.ParseInt(a.vars["seq"], 10, 64)
	if err != nil || fmt.Sprintf("%010d", seq) != a.vars["seq"] {
		return false
	}
	if seq != head.Batch && seq != head.Batch+1 {
		return false
	}

	return a.old == nil || a.appends()
}

// appends reports whether a batch keeps its existing lines.
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

// dropsOldest allows a machine to remove a batch that is too old for the log after the commit.
func dropsOldest(a *ask) bool {
	source, own := a.logSource()
	head, _ := decode[logHead](a.after(keys.LogHead(source)))
	seq, err := strconv.ParseInt(a.vars["seq"], 10, 64)
	return own && err == nil && seq <= head.Batch-maxLogBatches
}

// requests allows the unit's machine one request for the unit, and two for each of the unit's relations. The
// value must agree with the key, since the provisioner's leader acts on the value.
func requests(a *ask) bool {
	name := a.vars["unit"]
	kind, relation, _ := strings.Cut(a.vars["what"], "-")
	is, _ := decode[requestShape](a.new) // May has checked that it decodes
	switch {
	case !a.has(name) || is.Kind != kind:
		return false
	case kind == "remove": // also allowed for a dead unit, which the next case excludes
		return relation == "" && is.Relation == secret.NoRelation
	case !a.hosts(name):
		return false
	case kind != "end" && kind != "subordinate":
		return false
	case is.Relation < 0 || relation != strconv.Itoa(is.Relation):
		return false
	}

	r, _ := a.relation(relation) // a relation that does not exist has no services
	return r.has(serviceOf(name))
}

// maxBlob limits the blobs that agents write, in bytes.
const maxBlob = 64 << 20

// headsBlob allows a machine to begin, complete or touch a blob. It can correct the recorded size of a blob
// that is not complete. It can complete a blob only if the chunks have the blob's sum and size, and the commit
// completes no other blob.
func headsBlob(a *ask) bool {
	before, _ := decode[blobHead](a.old)
	after, ok := decode[blobHead](a.new)
	isSum := len(a.vars["sum"]) == 64 && strings.Trim(a.vars["sum"], "0123456789abcdef") == ""
	switch {
	case !ok || !a.works():
		return false
	case !isSum || after.Size < 0 || after.Size > maxBlob:
		return false
	case before.Complete:
		return after.Complete && before.Size == after.Size
	}

	return !after.Complete || a.completes(a.vars["sum"], after.Size)
}

// chunkKey returns the key of the chunk of a blob with the number n, which begins at 0.
func chunkKey(sum string, n int64) string { return fmt.Sprintf("blobs/%s/%04d", sum, n) }
