// Package hook defines the kinds of hooks, their names, and the queue of a unit's relation hooks. It merges
// new arrivals into the queue, and picks the queue's next hook.
//
// It does no I/O, and does not decide about a unit's workflow. agent/uniter/decide makes these decisions.
package hook

import (
	"cmp"
	"iter"
	"strings"

	"bijou/state"
	"bijou/state/actions"
)

// The kinds of hooks. The kind of a relation hook is also the end of its name, and the Pending field of its
// queue entry.
const (
	Install       = "install"
	UpgradeCharm  = "upgrade-charm"
	ConfigChanged = "config-changed"
	Start         = "start"
	Stop          = "stop"
	Remove        = "remove" // the unit's last hook, after stop
	UpdateStatus  = "update-status"

	LeaderElected         = "leader-elected"
	LeaderSettingsChanged = "leader-settings-changed"

	// These are the hooks for secrets. A secret's readers run SecretChanged, and its owner runs the other
	// three.
	SecretChanged = "secret-changed"
	SecretExpired = "secret-expired"
	SecretRotate  = "secret-rotate"
	SecretRemove  = "secret-remove"

	// These are the hooks for storage. The storage's name precedes the kind in the hook's name.
	StorageAttached  = "storage-attached"
	StorageDetaching = "storage-detaching"

	// These are operators' requests, which run as hooks do: an action of the charm, or a command.
	Action  = state.KindAction
	Command = state.KindCommand

	// The hooks of a relation. The relation's name precedes the kind in the hook's name. Created runs first,
	// when the unit has entered the relation and before any hook for a member.
	Created  = "relation-created"
	Joined   = "relation-joined"
	Changed  = "relation-changed"
	Departed = "relation-departed"
	Broken   = "relation-broken"
)

// Names returns the names of all hooks that a charm with these relations and storages can have.
func Names(relations, storages []string) []string {
	names := []string{
		Install, UpgradeCharm, ConfigChanged, Start, Stop, Remove, UpdateStatus,
		LeaderElected, LeaderSettingsChanged,
		SecretChanged, SecretExpired, SecretRotate, SecretRemove,
	}
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

// ForSecret returns a hook for a revision of a secret.
func ForSecret(kind, id string, revision int) state.Hook {
	h := ForUnit(kind)
	h.Secret = id
	h.SecretRevision = revision
	return h
}

// ForStorage returns a hook for a storage, such as "data-storage-attached".
func ForStorage(kind string, s state.Storage) state.Hook {
	h := ForUnit(kind)
	h.Name = s.Name() + "-" + kind
	h.Storage = s.ID
	return h
}

// commandName is the name of every command in logs.
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

// ForRelation returns a hook of a relation. member is the unit that causes the hook. If the settings of the
// remote service cause a changed hook, member is that service. For created and broken, member is empty.
func ForRelation(kind string, r Relation, member string) state.Hook {
	h := state.Hook{
		Kind:          kind,
		Name:          r.Name + "-" + kind,
		Relation:      r.ID,
		RelationName:  r.Name,
		RemoteService: r.RemoteService,
	}

	if IsUnit(member) { // otherwise RemoteService already names the service
		h.RemoteUnit = member
	}
	return h
}

// Member returns the name of the member that a relation hook concerns, as in the hook's queue entry. For
// created and broken it returns an empty string.
func Member(h state.Hook) string {
	if h.Kind == Changed {
		return cmp.Or(h.RemoteUnit, h.RemoteService)
	}
	return h.RemoteUnit
}

// IsUnit reports whether a member is a unit. Every other member is a remote service, and its hooks are about
// the service's own settings.
func IsUnit(member string) bool { return strings.Contains(member, "/") }

// Relation is a relation as one unit's hooks see it.
type Relation struct {
	ID            int
	Name          string // the relation's name in the local charm
	RemoteService string
	Peer          bool
}

// Entry is one pending entry of the queue.
type Entry struct {
	Relation Relation
	Member   string
	State    state.MemberState
}

// Hook returns the entry's pending hook.
func (e Entry) Hook() state.Hook { return ForRelation(e.State.Pending, e.Relation, e.Member) }

// Pick returns the entry whose hook runs next. A changed hook that must directly follow its joined hook comes
// first. Other entries of peer relations come last. Within these classes the oldest entry comes first. ok is
// false if no entry has a pending hook.
func Pick(entries iter.Seq[Entry]) (first Entry, ok bool) {
	for e := range entries {
		if e.State.Pending == "" {
			continue
		}
		if !ok || e.compare(first) < 0 {
			first = e
			ok = true
		}
	}
	return first, ok
}

// compare orders entries as Pick does. It orders entries with the same rank and place by relation and member.
func (e Entry) compare(other Entry) int {
	return cmp.Or(
		cmp.Compare(e.rank(), other.rank()),
		cmp.Compare(e.State.Place, other.State.Place),
		cmp.Compare(e.Relation.ID, other.Relation.ID),
		cmp.Compare(e.Member, other.Member),
	)
}

// rank returns the entry's class in the order of hooks. Entries of a lower rank run first. A changed hook
// that must follow its joined hook always has a lower rank than other hooks.
func (e Entry) rank() int {
	rank := 0
	if !isChangedOwed(e.State) {
		rank += 2
	}
	if e.Relation.Peer {
		rank++
	}
	return rank
}
