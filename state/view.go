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

// View reads the environment as it was at one revision. It is short-lived, for one goroutine, and
// must not outlive the call that it was handed to: using it afterwards panics.
type View struct{ keys *keyspace.View }

// Tx is one run of an Update: a View whose reads see its own writes, and become
// conditions of the commit.
type Tx struct {
	*View
	keys *keyspace.Tx
}

// Updater commits a function's writes, as State.Update does, perhaps under further
// conditions: Under and UpdaterFor return such.
type Updater func(ctx context.Context, f func(tx *Tx) error) error

// View is keyspace.Space.View, of entities: f may be run more than once, and does nothing but read.
func (s *State) View(ctx context.Context, f func(v *View) error) (err error) {
	return s.space.View(ctx, func(keys *keyspace.View) error { return f(&View{keys}) })
}

// Update runs f as one transaction on entities, as [keyspace.Space.Update] does. It commits f's writes only
// if nothing that f read has changed meanwhile; otherwise it runs f again from the start. It returns
// ErrTooLarge if the transaction is too large for a store.
func (s *State) Update(ctx context.Context, f func(tx *Tx) error) error {
	return Under(s.space)(ctx, f)
}

// Condition makes commits conditional on more than they have read: a Claim (ErrClaimLost), a
// Leadership (ErrSessionLost).
type Condition interface {
	Update(ctx context.Context, f func(keys *keyspace.Tx) error) error
}

// Under returns State.Update under that condition.
func Under(c Condition) Updater {
	return func(ctx context.Context, f func(tx *Tx) error) error {
		return c.Update(ctx, func(keys *keyspace.Tx) error { return f(newTx(keys)) })
	}
}

func newTx(keys *keyspace.Tx) *Tx { return &Tx{View: &View{keys.View}, keys: keys} }

// Read returns the result of f in a View of its own.
func Read[T any](ctx context.Context, s Viewer, f func(v *View) (T, error)) (result T, err error) {
	err = s.View(ctx, func(v *View) (err error) {
		result, err = f(v)
		return err
	})
	return result, err
}

// ReadBelow calls take with each record below the prefix, by key. It goes on without a record that does not
// decode.
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

// Revision is the revision of all reads: a watch continues after it.
func (v *View) Revision() (int64, error) { return v.keys.Revision() }

// Writes are the changes that one run of an Update is going to commit: whoever commits
// them need not read them again.
type Writes struct{ changes []keyspace.Change }

// Writes returns the writes so far. It is valid once the Update has succeeded.
func (tx *Tx) Writes() Writes { return Writes{tx.keys.Writes()} }

// ChangedKeys lists the keys that were written or removed.
func (w Writes) ChangedKeys() (keys []string) {
	for _, c := range w.changes {
		keys = append(keys, c.Key)
	}
	return keys
}

// batchSize is small, since to end a relation costs up to a dozen operations of a transaction.
const batchSize = 10

// inBatches calls f for each item, batchSize to a transaction. Items that are gone
// meanwhile are no error.
func inBatches[T any](ctx context.Context, update Updater, items []T, f func(tx *Tx, item T) error) error {
	return inBatchesOf(ctx, batchSize, update, items, f)
}

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
		if err != nil {
			return err
		}
	}

	return nil
}

// addInBatches adds n entities, batchSize to a transaction. On an error it returns those
// that were added.
func addInBatches[T any](ctx context.Context, update Updater, n int, add func(tx *Tx, i int) (T, error)) ([]T, error) {
	var all []T

	for len(all) < n {
		var batch []T
		err := update(ctx, func(tx *Tx) error {
			batch = nil
			for range min(batchSize, n-len(all)) {
				one, err := add(tx, len(all)+len(batch))
				if err != nil {
					return err
				}
				batch = append(batch, one)
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

// Steps counts the steps of a long job of a State, as its Progress is told of them.
type Steps = keyspace.Steps

// withProgress returns an Updater whose every commit counts as batchSize steps.
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

// entityScope covers an entity's record, and all keys below it.
func entityScope(key string) Scope {
	return Scope{Keys: []string{key}, Prefixes: []string{key + "/"}}
}

// WatchUnit covers a unit's record and ports.
func WatchUnit(unit string) Scope { return entityScope(keys.Unit(unit)) }

// WatchService covers a service's record, its configuration, its relations and their
// lives, and its leader.
func WatchService(service string) Scope {
	s := entityScope(keys.Service(service))
	s.Keys = append(s.Keys, keys.Leader(keys.ServiceLeaderName(service)))
	return s
}

// WatchMembers covers the units of one service in a relation, the versions of their
// settings there, and the service's own settings.
func WatchMembers(id int, service string) Scope {
	return Scope{
		Keys:     []string{keys.AppSettings(id, service)},
		Prefixes: []string{keys.ServiceMembers(id, service)},
	}
}

// WatchRelations covers every relation, with its members and all settings in it.
func WatchRelations() Scope { return keyspace.Below(keys.Relations) }

// WatchMachine covers a machine's record, and its units.
func WatchMachine(id string) Scope { return entityScope(keys.Machine(id)) }

// WatchMachines covers every machine.
func WatchMachines() Scope { return keyspace.Below(keys.Machines) }

// WatchUniter covers the records of a unit's agent.
func WatchUniter(unit string) Scope { return keyspace.Below(keys.Uniter(unit)) }

// WatchHistory covers the hooks that a unit has run.
func WatchHistory(unit string) Scope { return keyspace.Below(keys.UnitHistory(unit)) }

// WatchHistories covers the hooks that all units have run.
func WatchHistories() Scope { return keyspace.Below(keys.History) }

// WatchPresence covers the presence of all agents.
func WatchPresence() Scope { return keyspace.Below(keys.Presences) }

// WatchMachineAgents covers the presence of machines' agents, and no unit's.
func WatchMachineAgents() Scope { return keyspace.Below(keys.Presence(MachineAgent(""))) }

// WatchEnvironment covers the environment's own record.
func WatchEnvironment() Scope { return Scope{Keys: []string{keys.Environment}} }

// WatchAll covers everything but logs.
func WatchAll() Scope {
	return Scope{Keys: []string{keys.Environment, keys.Provisioner}, Prefixes: []string{
		keys.Actions, keys.Resources, keys.Requests,
		keys.Charms, keys.Leaders, keys.Machines, keys.Presences, keys.Relations, keys.Services, keys.Uniters, keys.Units,
	}}
}

// MembershipOf parses a key from WatchMembers. It returns the relation, and the unit whose membership
// changed or the service whose own settings changed.
func MembershipOf(key string) (relation int, member string, ok bool) {
	rest, ok := strings.CutPrefix(key, keys.Relations)
	number, rest, _ := strings.Cut(rest, "/")
	kind, member, _ := strings.Cut(rest, "/")
	relation, err := strconv.Atoi(number)
	return relation, member, ok && (kind == "members" || kind == "apps") && err == nil
}

// HistoryOf parses a key from WatchHistories: the unit that has run a hook.
func HistoryOf(key string) (unit string, ok bool) {
	rest, ok := strings.CutPrefix(key, keys.History)
	return path.Dir(rest), ok
}

// AgentOf parses a key from WatchMachineAgents: the machine whose agent came or went.
func AgentOf(key string) (machine string, ok bool) {
	return strings.CutPrefix(key, keys.Presence(MachineAgent("")))
}

type (
	// Scope is a part of the environment that can be watched.
	Scope = keyspace.Scope
	// Watcher delivers which keys of its scopes changed.
	Watcher = keyspace.Watcher
	// Feed turns what watchers deliver into a channel.
	Feed = keyspace.Feed
	// KeyChange is the change of one key by a commit.
	KeyChange = keyspace.Change
)

// NewFeed returns an empty feed.
func NewFeed() *Feed { return keyspace.NewFeed() }
