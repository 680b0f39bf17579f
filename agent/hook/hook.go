// Package hook knows the kinds of hooks, their names, and the queue of a unit's
// relation hooks: how what arrives is reduced, and what comes next.
//
// It is pure: it reads and writes nothing, and decides nothing about a unit's
// workflow (agent/uniter/decide does). The packages of agent import it, and multicall.
package hook

import (
	"cmp"
	"iter"
	"strings"

	"bijou/state"
	"bijou/state/actions"
)

// The kinds of hooks. A relation hook's kind is also what its queue entry says,
// and the end of its name.
const (
	Install       = "install"
	UpgradeCharm  = "upgrade-charm"
	ConfigChanged = "config-changed"
	Start         = "start"
	Stop          = "stop"
	Remove        = "remove" // after stop, the unit's last
	UpdateStatus  = "update-status"

	LeaderElected         = "leader-elected"
	LeaderSettingsChanged = "leader-settings-changed"

	// Those about a secret: the owner's, but for the changed, which its readers get.
	SecretChanged = "secret-changed"
	SecretExpired = "secret-expired"
	SecretRotate  = "secret-rotate"
	SecretRemove  = "secret-remove"

	// Those about a storage, whose name comes before.
	StorageAttached  = "storage-attached"
	StorageDetaching = "storage-detaching"

	// What an operator asks for is run as a hook is: an action of the charm, or a command.
	Action  = state.KindAction
	Command = state.KindCommand

	// Created is a relation's first: the unit is in it, and knows of no member yet.
	Created  = "relation-created"
	Joined   = "relation-joined"
	Changed  = "relation-changed"
	Departed = "relation-departed"
	Broken   = "relation-broken"
)

// Names returns the names of all hooks of a charm with those relations and storages.
func Names(relations, storages []string) []string {
	names := []string{Install, UpgradeCharm, ConfigChanged, Start, Stop, Remove, UpdateStatus, LeaderElected, LeaderSettingsChanged,
		SecretChanged, SecretExpired, SecretRotate, SecretRemove}
	for _, relation := range relations {
		for _, kind := range []string{Created, Joined, Changed, Departed, Broken} {
			names = append(names, relation+"-"+kind)
		}
	}

	for _, storage := range storages {
		names = append(names, storage+"-"+StorageAttached, storage+"-"+StorageDetaching)
	}
	return names
}

// ForUnit returns a hook of the unit itself.
func ForUnit(kind string) state.Hook {
	return state.Hook{Kind: kind, Name: kind, Relation: state.NoRelation}
}

// ForSecret returns a hook about a revision of a secret.
func ForSecret(kind, id string, revision int) state.Hook {
	h := ForUnit(kind)
	h.Secret = id
	h.SecretRevision = revision
	return h
}

// ForStorage returns a hook about a storage: "data-storage-attached".
func ForStorage(kind string, s state.Storage) state.Hook {
	h := ForUnit(kind)
	h.Name = s.Name() + "-" + kind
	h.Storage = s.ID
	return h
}

// commandName names commands in logs.
const commandName = "juju-run"

// ForAction returns the hook of an action or a command.
func ForAction(a actions.Action) state.Hook {
	h := state.Hook{Kind: Action, Name: a.Name, Relation: state.NoRelation, Action: a.ID}
	if a.IsCommand() {
		h.Kind = Command
		h.Name = commandName
	}
	return h
}

// IsAction reports whether the hook is an action or a command of an operator.
func IsAction(h state.Hook) bool { return h.Kind == Action || h.Kind == Command }

// ForRelation returns a hook of a relation. member is the unit that causes it, the remote
// service in a changed for its own settings, and empty in created and broken.
func ForRelation(kind string, r Relation, member string) state.Hook {
	h := state.Hook{
		Kind:          kind,
		Name:          r.Name + "-" + kind,
		Relation:      r.ID,
		RelationName:  r.Name,
		RemoteService: r.RemoteService,
	}

	if IsUnit(member) {
		h.RemoteUnit = member
	}
	return h
}

// Member returns the name of the queue's entry that the hook comes from. It is empty for created and
// broken.
func Member(h state.Hook) string {
	if h.Kind == Changed {
		return cmp.Or(h.RemoteUnit, h.RemoteService)
	}
	return h.RemoteUnit
}

// IsUnit reports whether an entry of the queue stands for a unit. The other entries stand for the own
// settings of a remote service.
func IsUnit(member string) bool { return strings.Contains(member, "/") }

// Relation is a relation as one unit's hooks see it.
type Relation struct {
	ID            int
	Name          string // as the local charm calls it
	RemoteService string
	Peer          bool
}

// Entry is one pending entry of the queue.
type Entry struct {
	Relation Relation
	Member   string
	State    state.MemberState
}

// Hook returns the hook that is pending.
func (e Entry) Hook() state.Hook { return ForRelation(e.State.Pending, e.Relation, e.Member) }

// Pick returns the entry whose hook runs next. A changed that is owed after its joined comes first, then
// the oldest; peer relations come last. ok is false if there is none.
func Pick(entries iter.Seq[Entry]) (first Entry, ok bool) {
	for e := range entries {
		if e.State.Pending != "" && (!ok || e.compare(first) < 0) {
			first = e
			ok = true
		}
	}
	return first, ok
}

func (e Entry) compare(o Entry) int {
	return cmp.Or(cmp.Compare(e.rank(), o.rank()), cmp.Compare(e.State.Place, o.State.Place),
		cmp.Compare(e.Relation.ID, o.Relation.ID), cmp.Compare(e.Member, o.Member))
}

// rank returns the entry's class in the order of hooks. Lower ranks go first, and the place in the queue
// decides within one.
func (e Entry) rank() (n int) {
	if !isChangedOwed(e.State) {
		n += 2
	}
	if e.Relation.Peer {
		n++
	}
	return n
}
