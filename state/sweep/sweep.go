// Package sweep removes records and blobs of an environment to which no record refers, and finishes
// interrupted removals.
package sweep

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"bijou/state"
	"bijou/state/actions"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/logs"
	"bijou/state/secret"
	"bijou/state/secret/record"
)

// Run finishes interrupted removals, and removes records and blobs that are no longer needed:
//
//   - data that the store keeps beside its keys
//   - services whose removal was interrupted, and resources of services that are gone
//   - keys of relations that are gone, and records of storage on machines that are gone
//   - tools that no record uses
//   - secrets whose owners are gone, and contents of secrets without a record
//   - secrets' consumers that are gone, and secrets' grants that are no longer valid
//   - charms that [Charms] removes
//   - blobs to which no record refers, if they were not touched for keyspace.BlobGrace
//   - logs of units and machines that are gone, if their last lines are older than LogGrace
//   - actions of units that are gone, if they are older than LogGrace
//
// The leading provisioner calls it regularly. It works in batches and can be interrupted at any time. If a step
// fails, Run continues with the next, unless ctx is done, or the store is gone, away or closed. It returns the
// errors of all steps.
func Run(ctx context.Context, s *state.State, now time.Time) error {
	var failures []error
	beforeLogGrace := now.Add(-LogGrace)
	findOldActions := func(v *state.View) ([]string, error) { return oldActions(v, beforeLogGrace) }

	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"the store", func() error { return s.Keys().SweepStore(ctx) }},
		{"services", func() error { return sweepServices(ctx, s) }},
		{"relations", func() error { return removeStray(ctx, s, strayRelationKeys) }},
		{"storage", func() error { return removeStray(ctx, s, strayStorages) }},
		{"resources", func() error { return sweepResources(ctx, s) }},
		{"tools", func() error { return sweepTools(ctx, s) }},
		{"secrets", func() error { return sweepSecrets(ctx, s) }},
		{"charms", func() error { return Charms(ctx, s, now) }},
		{"actions", func() error { return removeStray(ctx, s, findOldActions) }},
		// The steps above have removed records, and so references to blobs. nil selects all blobs.
		{"blobs", func() error { return sweepBlobs(ctx, s, now.Add(-keyspace.BlobGrace), nil) }},
		{"logs", func() error { return sweepLogs(ctx, s, beforeLogGrace) }},
	} {
		err := step.do()
		if err != nil {
			failures = append(failures, fmt.Errorf("cannot sweep %s: %w", step.name, err))
		}
		// Without the store, or once ctx is done, the other steps would only fail.
		if isEnd(ctx, err) {
			break
		}
	}

	return errors.Join(failures...)
}

// isEnd reports whether the sweep cannot continue: ctx is done, or err means that the store is gone, away or
// closed. err can be nil.
func isEnd(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrAway) ||
		errors.Is(err, state.ErrClosed)
}

// forEach calls do for each item, even after an error, and returns all errors. It does not return the errors of
// damaged records, which s.Skips reports. It stops early if the sweep cannot continue.
func forEach[T any](ctx context.Context, s *state.State, items []T, do func(item T) error) error {
	var failures []error
	for _, item := range items {
		err := do(item)
		if err != nil && !s.Skips(err) {
			failures = append(failures, err)
		}
		if isEnd(ctx, err) {
			break
		}
	}

	return errors.Join(failures...)
}

// sweepServices continues destructions of services that were interrupted. It does nothing for services that are
// alive.
func sweepServices(ctx context.Context, s *state.State) error {
	services, err := state.Read(ctx, s, (*state.View).Services)
	if err != nil {
		return err
	}

	return forEach(ctx, s, services, func(service state.Service) error {
		if service.Life == state.Alive {
			return nil
		}
		return state.IgnoreNotFound(s.DestroyService(ctx, service.Name))
	})
}

// removeStray removes the keys that find returns. Each of these keys must contain an id that is never used
// again, so that nothing can write the key between find and the removal.
func removeStray(ctx context.Context, s *state.State, find func(v *state.View) ([]string, error)) error {
	stray, err := state.Read(ctx, s, find)
	if err != nil {
		return err
	}
	return s.Keys().RemoveKeys(ctx, stray)
}

// strayRelationKeys finds the keys that belong to relations without a record.
func strayRelationKeys(v *state.View) (stray []string, err error) {
	kvs, err := v.Keys().List(keys.Relations)
	if err != nil {
		return nil, err
	}

	hasRecord := map[string]bool{}
	for _, kv := range kvs {
		if !strings.Contains(kv.Key[len(keys.Relations):], "/") {
			hasRecord[kv.Key[len(keys.Relations):]] = true
		}
	}

	for _, kv := range kvs {
		id, _, below := strings.Cut(kv.Key[len(keys.Relations):], "/")
		if below && !hasRecord[id] {
			stray = append(stray, kv.Key)
		}
	}

	return stray, nil
}

// strayStorages returns the keys of the storage records of machines that no longer exist. An agent removes only
// storage that its machine's list contains, so the record of any other storage outlives the machine.
func strayStorages(v *state.View) (stray []string, err error) {
	all, err := v.Storages()
	if err != nil {
		return nil, err
	}

	for _, s := range all {
		exists, err := v.Keys().HasUnguarded(keys.Machine(s.Machine))
		if err != nil {
			return nil, err
		}
		if !exists {
			stray = append(stray, keys.Storage(s.ID))
		}
	}

	return stray, nil
}

// sweepTools removes the records of binaries that neither a machine nor the environment uses. sweepBlobs removes
// their blobs.
func sweepTools(ctx context.Context, s *state.State) error {
	return s.Update(ctx, func(tx *state.Tx) error {
		all, err := tx.AllTools()
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return nil
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}

		used := map[string]bool{env.Tools: true}
		if err := addUsedTools(tx.View, used); err != nil {
			return err
		}

		for _, t := range all {
			if !used[t.Name] {
				tx.Keys().Remove(keys.Tool(t.Name))
			}
		}

		return nil
	})
}

// addUsedTools adds to used the names of the tools that machines use. A machine's damaged record is an error,
// since otherwise the machine's tools could be removed.
func addUsedTools(v *state.View, used map[string]bool) error {
	kvs, err := v.Keys().List(keys.Machines)
	if err != nil {
		return err
	}

	for _, kv := range kvs {
		isBelow := strings.Contains(kv.Key[len(keys.Machines):], "/")
		if isBelow {
			continue
		}

		m, err := keyspace.Decode[state.Machine](kv)
		if err != nil {
			return err
		}
		used[m.Tools] = true
	}

	return nil
}

// oldActions returns the keys of removed units' actions that were enqueued before the given time.
func oldActions(v *state.View, before time.Time) (old []string, err error) {
	kvs, err := v.Keys().List(keys.Actions)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		a, err := keyspace.Decode[actions.Action](kv)
		if v.Keys().Skips(err) {
			continue
		}
		if err != nil {
			return nil, err
		}

		hasUnit, err := v.Keys().HasUnguarded(keys.Unit(a.Unit))
		if err != nil {
			return nil, err
		}

		_, isAction := keys.CutInt(kv.Key, keys.Actions)
		if isAction && !hasUnit && a.Enqueued.Before(before) {
			old = append(old, kv.Key)
		}
	}

	return old, nil
}

// LogGrace is how long a log is kept after its last line, once its unit or machine is gone.
const LogGrace = 7 * 24 * time.Hour

// sweepLogs removes the logs of units and machines that are gone, if their last lines are from before the given
// time.
func sweepLogs(ctx context.Context, s *state.State, before time.Time) error {
	old, err := state.Read(ctx, s, func(v *state.View) ([]string, error) { return oldLogs(v, before) })
	if err != nil {
		return err
	}

	return forEach(ctx, s, old, func(source string) error {
		return s.Update(ctx, func(tx *state.Tx) error { return logs.Remove(tx, source) })
	})
}

// oldLogs returns the units and machines that no longer exist, and whose last log line is from before the given
// time. A log without lines also counts as old.
func oldLogs(v *state.View, before time.Time) (old []string, err error) {
	sources, err := logs.Sources(v, nil) // all units and machines that have a log
	if err != nil {
		return nil, err
	}

	for _, source := range sources {
		exists, err := v.Keys().HasUnguarded(sourceKey(source))
		if err != nil {
			return nil, err
		}
		if exists {
			continue
		}

		last, err := logs.Read(v, logs.Filter{Sources: []string{source}, Last: 1})
		if err != nil {
			return nil, err
		}

		if len(last) == 0 || last[0].Time.Before(before) {
			old = append(old, source)
		}
	}

	return old, nil
}

// sourceKey returns the key of the unit or machine that writes a log.
func sourceKey(source string) string {
	if charm.IsUnit(source) {
		return keys.Unit(source)
	}
	return keys.Machine(strings.TrimPrefix(source, "machine-"))
}

// sweepSecrets removes secrets whose owner is gone, and contents of secrets without a record. From each other
// secret, it removes consumers that are gone and grants that are no longer valid.
func sweepSecrets(ctx context.Context, s *state.State) error {
	all, err := state.Read(ctx, s, record.All)
	if err != nil {
		return err
	}

	err = forEach(ctx, s, all, func(r secret.Record) error {
		return s.Update(ctx, func(tx *state.Tx) error { return sweepSecret(tx, r.ID) })
	})
	if isEnd(ctx, err) {
		return err
	}

	// Even if some secrets failed, stray contents can be removed.
	strayErr := removeStray(ctx, s, strayContents)
	return errors.Join(err, strayErr)
}

// strayContents finds the contents of secrets without a record.
func strayContents(v *state.View) (stray []string, err error) {
	kvs, err := v.Keys().ListUnguarded(keys.SecretContents)
	if err != nil {
		return nil, err
	}

	for _, kv := range kvs {
		id, _, _ := strings.Cut(kv.Key[len(keys.SecretContents):], "/")
		exists, err := v.Keys().HasUnguarded(keys.Secret(id))
		if err != nil {
			return nil, err
		}

		if !exists {
			stray = append(stray, kv.Key)
		}
	}

	return stray, nil
}

// sweepSecret removes a secret if its owner is gone. Otherwise it removes the secret's consumers that are gone,
// and its grants that are no longer valid.
func sweepSecret(tx *state.Tx, id string) error {
	r, err := record.Get(tx.View, id)
	if err != nil {
		return state.IgnoreNotFound(err)
	}

	index, err := record.IndexOf(tx.View, r.Owner)
	if err != nil {
		return err
	}

	// The owner's index is removed together with the owner. Operators have no index.
	isOperators := r.Owner == (secret.Owner{})
	if !isOperators && !slices.Contains(index.Owned, id) {
		const allRevisions = 0
		_, err := record.Remove(tx, r, allRevisions)
		return err
	}

	consumers := len(r.Consumers)
	grants := len(r.Grants)

	for unit := range r.Consumers {
		exists, err := tx.Keys().HasUnguarded(keys.Unit(unit))
		if err != nil {
			return err
		}

		if !exists {
			delete(r.Consumers, unit)
		}
	}

	for _, g := range slices.Clone(r.Grants) {
		valid, err := isGrantValid(tx, g, id)
		if err != nil {
			return err
		}

		if !valid {
			r.RemoveGrants(g)
		}
	}

	if len(r.Consumers) == consumers && len(r.Grants) == grants {
		return nil
	}
	return record.Put(tx, r)
}

// isGrantValid reports whether a grant's relation still exists. For a grant by operators, it reports whether
// the service's index still names the secret. The reads are not conditions of the commit, since a secret with
// many grants would need too many. The condition on the secret's record is enough, since a new grant changes
// the record.
func isGrantValid(tx *state.Tx, g secret.Grant, id string) (bool, error) {
	if g.Relation != secret.NoRelation {
		return tx.Keys().HasUnguarded(keys.Relation(g.Relation))
	}

	kv, err := tx.Keys().GetKV(keys.ServiceSecrets(g.Service))
	if err != nil {
		return false, err
	}
	if kv.Revision == 0 {
		return false, nil
	}
	index, err := keyspace.Decode[record.Index](kv)
	return slices.Contains(index.Granted, id), err
}
