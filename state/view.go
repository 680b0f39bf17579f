package state

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"

	"bijou/state/keys"
	"bijou/state/keyspace"
)

// View reads the environment as it was at one revision. Only one goroutine may use it. Its methods panic
// after the function that received it has returned.
type View struct{ keys *keyspace.View }

// Tx is one run of an Update. It is a View whose reads see its own writes, and become conditions of the
// commit.
type Tx struct {
	*View
	keys *keyspace.Tx
}

// Updater commits a function's writes, as State.Update does. [Under] and [UpdaterFor] return Updaters that
// commit only under a further condition.
type Updater func(ctx context.Context, f func(tx *Tx) error) error

// View calls f with a View of the environment, as [keyspace.Space.View] does. It may run f more than once, so
// f must only read.
func (s *State) View(ctx context.Context, f func(v *View) error) error {
	return s.space.View(ctx, func(keys *keyspace.View) error { return f(&View{keys}) })
}

// Update runs f as one transaction on entities, as [keyspace.Space.Update] does. It commits f's writes only
// if nothing that f read has changed since then. Otherwise it runs f again from the start. It returns
// ErrTooLarge if the transaction is too large for a store.
func (s *State) Update(ctx context.Context, f func(tx *Tx) error) error {
	return Under(s.space)(ctx, f)
}

// Condition makes commits depend on more than the keys that they have read. A [Claim] is a Condition whose
// Update returns ErrClaimLost; a [Leadership] is one whose Update returns ErrSessionLost.
type Condition interface {
	Update(ctx context.Context, f func(keys *keyspace.Tx) error) error
}

// Under returns an Updater that commits only under the condition.
func Under(c Condition) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return c.Update(ctx, func(keys *keyspace.Tx) error { return f(newTx(keys)) })
	}
}

// newTx returns the Tx on entities for a transaction on keys.
func newTx(keys *keyspace.Tx) *Tx { return &Tx{View: &View{keys.View}, keys: keys} }

// Read calls f in a new View and returns its result.
func Read[T any](ctx context.Context, s Viewer, f func(v *View) (T, error)) (result T, err error) {
	err = s.View(ctx, func(v *View) (err error) {
		result, err = f(v)
		return err
	})
	return result, err
}

// ReadBelow calls take with each record below the prefix, in the order of the keys. It skips records that do
// not decode, and leaves their errors to the view; see [keyspace.View.Skips].
func ReadBelow[T any](v *View, prefix string, take func(key string, record T)) error {
	kvs, err := v.keys.List(prefix)
	if err != nil {
		return err
	}

	for _, kv := range kvs {
		record, err := keyspace.Decode[T](kv)
		if v.keys.Skips(err) {
			continue
		}
		if err != nil {
			return err
		}
		take(kv.Key, record)
	}

	return nil
}

// Skips does what [keyspace.View.Skips] does.
func (v *View) Skips(err error) bool { return v.keys.Skips(err) }

// TakeDamage does what [keyspace.View.TakeDamage] does.
func (v *View) TakeDamage() map[string]error { return v.keys.TakeDamage() }

// Revision returns the revision of all reads. A watch that starts after it sees every later change.
func (v *View) Revision() (int64, error) { return v.keys.Revision() }

// Writes are the changes that an Update commits. The caller can apply them to records that it has read before,
// instead of reading the records again.
type Writes struct{ changes []keyspace.Change }

// Writes returns the writes so far. They are committed only once the Update has succeeded.
func (tx *Tx) Writes() Writes { return Writes{tx.keys.Writes()} }

// Change returns the change of a key; ok is false if the key was neither written nor removed.
func (w Writes) Change(key string) (c keyspace.Change, ok bool) {
	i := slices.IndexFunc(w.changes, func(c keyspace.Change) bool { return c.Key == key })
	if i < 0 {
		return c, false
	}
	return w.changes[i], true
}

// ChangedKeys lists the keys that were written or removed.
func (w Writes) ChangedKeys() (keys []string) {
	for _, c := range w.changes {
		keys = append(keys, c.Key)
	}
	return keys
}

// batchSize is small, since ending a relation can add twelve operations to a transaction.
const batchSize = 10

// inBatches does what inBatchesOf does, in transactions of at most batchSize items.
func inBatches[T any](ctx context.Context, update Updater, items []T, f func(tx *Tx, item T) error) error {
	return inBatchesOf(ctx, batchSize, update, items, f)
}

// inBatchesOf calls f for all items, in transactions of at most size items. If such a transaction is too
// large, it repeats the batch with one item a transaction. It skips items for which f returns ErrNotFound.
func inBatchesOf[T any](ctx context.Context, size int, update Updater, items []T, f func(tx *Tx, item T) error) error {
	for batch := range slices.Chunk(items, size) {
		err := update(ctx, func(tx *Tx) error {
			for _, item := range batch {
				if err := f(tx, item); err != nil && !errors.Is(err, ErrNotFound) {
					return err
				}
			}
			return nil
		})
		if errors.Is(err, ErrTooLarge) && size > 1 {
			err = inBatchesOf(ctx, 1, update, batch, f)
		}
		if err != nil {
			return err
		}
	}

	return nil
}

// addInBatches adds n entities, in transactions of at most batchSize entities. It calls add with the number i of
// each entity, from 0 to n-1. If it fails, it returns the entities that it has added, and an error.
func addInBatches[T any](ctx context.Context, update Updater, n int, add func(tx *Tx, i int) (T, error)) ([]T, error) {
	var all []T

	for len(all) < n {
		var batch []T
		err := update(ctx, func(tx *Tx) error {
			// After a conflict, this function runs again.
			batch = nil
			for range min(batchSize, n-len(all)) {
				entity, err := add(tx, len(all)+len(batch))
				if err != nil {
					return err
				}
				batch = append(batch, entity)
			}

			return nil
		})
		if err != nil {
			return all, err
		}
		all = append(all, batch...)
	}

	return all, nil
}

// Steps is the progress of a long job, as a State reports it to its Progress.
type Steps = keyspace.Steps

// withProgress reports p at once, and returns an Updater that reports progress after each commit. Each commit
// counts as batchSize steps.
func (s *State) withProgress(update Updater, p Steps) Updater {
	s.space.Progress.Report(p)
	return func(ctx context.Context, f func(tx *Tx) error) error {
		if err := update(ctx, f); err != nil {
			return err
		}
		p.Done = min(p.Done+batchSize, p.Total)
		s.space.Progress.Report(p)
		return nil
	}
}

// entityScope returns the [Scope] of an entity's record, and all keys below it.
func entityScope(key string) Scope {
	return Scope{Keys: []string{key}, Prefixes: []string{key + "/"}}
}

// WatchUnit returns the [Scope] of a unit's record and ports.
func WatchUnit(unit string) Scope { return entityScope(keys.Unit(unit)) }

// WatchService returns the [Scope] of a service's record, its configuration, its leader, and its relations
// with their lives.
func WatchService(service string) Scope {
	s := entityScope(keys.Service(service))
	s.Keys = append(s.Keys, keys.Leader(keys.ServiceLeaderName(service)))
	return s
}

// WatchMembers returns the [Scope] of the units of one service in a relation, the versions of their
// settings there, and the service's own settings.
func WatchMembers(id int, service string) Scope {
	return Scope{
		Keys:     []string{keys.AppSettings(id, service)},
		Prefixes: []string{keys.ServiceMembers(id, service)},
	}
}

// WatchRelations returns the [Scope] of every relation, with its members and all settings in it.
func WatchRelations() Scope { return keyspace.Below(keys.Relations) }

// WatchMachine returns the [Scope] of a machine's record, and its units.
func WatchMachine(id string) Scope { return entityScope(keys.Machine(id)) }

// WatchMachines returns the [Scope] of every machine.
func WatchMachines() Scope { return keyspace.Below(keys.Machines) }

// WatchUniter returns the [Scope] of the records of a unit's agent.
func WatchUniter(unit string) Scope { return keyspace.Below(keys.Uniter(unit)) }

// WatchHistory returns the [Scope] of the hooks that a unit has run.
func WatchHistory(unit string) Scope { return keyspace.Below(keys.UnitHistory(unit)) }

// WatchHistories returns the [Scope] of the hooks that all units have run.
func WatchHistories() Scope { return keyspace.Below(keys.History) }

// WatchPresence returns the [Scope] of the presence of all agents.
func WatchPresence() Scope { return keyspace.Below(keys.Presences) }

// WatchMachineAgents returns the [Scope] of the presence of machines' agents, but not of units' agents.
func WatchMachineAgents() Scope { return keyspace.Below(keys.Presence(MachineAgent(""))) }

// WatchEnvironment returns the [Scope] of the environment's own record.
func WatchEnvironment() Scope { return Scope{Keys: []string{keys.Environment}} }

// WatchAll returns the [Scope] of the environment, its provisioner, charms, applications, units, machines,
// relations, agents, actions, resources and requests. It leaves out logs, the histories of hooks, and the records of
// secrets and storage, but not the lists of them below units, applications and machines.
func WatchAll() Scope {
	return Scope{Keys: []string{keys.Environment, keys.Provisioner}, Prefixes: []string{
		keys.Actions, keys.Resources, keys.Requests,
		keys.Charms, keys.Leaders, keys.Machines, keys.Presences, keys.Relations, keys.Services, keys.Uniters, keys.Units,
	}}
}

// MembershipOf parses a key from WatchMembers. It returns the relation, and the unit whose membership
// changed or the service whose own settings changed. ok is false if the key is about neither.
func MembershipOf(key string) (relation int, member string, ok bool) {
	rest, isRelation := strings.CutPrefix(key, keys.Relations)
	number, rest, _ := strings.Cut(rest, "/")
	kind, member, _ := strings.Cut(rest, "/")
	relation, err := strconv.Atoi(number)

	isKnownKind := kind == "members" || kind == "apps"
	return relation, member, isRelation && isKnownKind && err == nil
}

// HistoryOf parses a key from WatchHistories. It returns the unit that has run the hook.
func HistoryOf(key string) (unit string, ok bool) {
	rest, ok := strings.CutPrefix(key, keys.History)
	return path.Dir(rest), ok
}

// AgentOf parses a key from WatchMachineAgents. It returns the machine whose agent's presence changed.
func AgentOf(key string) (machine string, ok bool) {
	return strings.CutPrefix(key, keys.Presence(MachineAgent("")))
}

type (
	// Scope is a part of the environment that can be watched.
	Scope = keyspace.Scope
	// Watcher delivers the keys of its scopes that changed.
	Watcher = keyspace.Watcher
	// Feed collects the changes that watchers deliver, and signals on a channel that there are some.
	Feed = keyspace.Feed
	// KeyChange is the change of one key by a commit.
	KeyChange = keyspace.Change
)

// NewFeed returns an empty feed.
func NewFeed() *Feed { return keyspace.NewFeed() }
