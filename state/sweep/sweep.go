// Package sweep removes from an environment what nothing refers to any more, and finishes
// what was left half-way.
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

// Run finishes interrupted removals, and removes records that nothing refers to:
//
// * services whose removal was interrupted, and resources and secrets of services that are gone,
// * settings of relations that are gone,
// * tools that no machine and charms that no service uses,
// * blobs that nothing refers to, untouched for keyspace.BlobGrace before now,
// * logs and actions of units that were removed LogGrace before now.
//
// The leading provisioner calls it from time to time. It works in batches, and may be interrupted.
func Run(ctx context.Context, s *state.State, now time.Time) error {
	beforeLogGrace := now.Add(-LogGrace)
	findOldActions := func(v *state.View) ([]string, error) { return oldActions(v, beforeLogGrace) }

	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"the store", func() error { return s.Keys().SweepStore(ctx) }},
		{"services", func() error { return sweepServices(ctx, s) }},
		{"relations", func() error { return removeStray(ctx, s, strayRelationKeys) }},
		{"resources", func() error { return sweepResources(ctx, s) }},
		{"tools", func() error { return sweepTools(ctx, s) }},
		{"secrets", func() error { return sweepSecrets(ctx, s) }},
		{"charms", func() error { return Charms(ctx, s, now) }},
		{"actions", func() error { return removeStray(ctx, s, findOldActions) }},
		{"blobs", func() error { return sweepBlobs(ctx, s, now.Add(-keyspace.BlobGrace), nil) }},
		{"logs", func() error { return sweepLogs(ctx, s, beforeLogGrace) }},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("cannot sweep %s: %w", step.what, err)
		}
	}

	return nil
}

// sweepServices continues destructions that were interrupted.
func sweepServices(ctx context.Context, s *state.State) error {
	services, err := state.Read(ctx, s, (*state.View).Services)
	if err != nil {
		return err
	}

	for _, sv := range services {
		if sv.Life == state.Alive {
			continue
		}
		if err := s.DestroyService(ctx, sv.Name); err != nil && !errors.Is(err, state.ErrNotFound) && !s.Skips(err) {
			return err
		}
	}

	return nil
}

// removeStray removes the keys that find finds. They have ids, which are never used again.
func removeStray(ctx context.Context, s *state.State, find func(v *state.View) ([]string, error)) error {
	stray, err := state.Read(ctx, s, find)
	if err != nil {
		return err
	}
	return s.Keys().RemoveKeys(ctx, stray)
}

// strayRelationKeys finds the keys below relations that have no record.
func strayRelationKeys(v *state.View) (stray []string, err error) {
	kvs, err := v.Keys().List(keys.Relations)
	if err != nil {
		return nil, err
	}

	records := map[string]bool{}
	for _, kv := range kvs {
		if !strings.Contains(kv.Key[len(keys.Relations):], "/") {
			records[kv.Key[len(keys.Relations):]] = true
		}
	}

	for _, kv := range kvs {
		id, _, below := strings.Cut(kv.Key[len(keys.Relations):], "/")
		if below && !records[id] {
			stray = append(stray, kv.Key)
		}
	}

	return stray, nil
}

// sweepTools removes the records of binaries that no machine, and not the environment, uses.
func sweepTools(ctx context.Context, s *state.State) error {
	return s.Update(ctx, func(tx *state.Tx) error {
		all, err := tx.AllTools()
		if err != nil || len(all) == 0 {
			return err
		}
		env, err := tx.Environment()
		if err != nil {
			return err
		}

		machines, err := tx.Machines()
		if err != nil {
			return err
		}

		used := map[string]bool{env.Tools: true}
		for _, m := range machines {
			used[m.Tools] = true
		}

		for _, t := range all {
			if !used[t.Name] {
				tx.Keys().Remove(keys.Tool(t.Name))
			}
		}

		return nil
	})
}

// oldActions returns the actions of removed units, except those that were requested after before.
func oldActions(v *state.View, before time.Time) (stale []string, err error) {
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
		there, err := v.Keys().HasUnguarded(keys.Unit(a.Unit))
		if err != nil {
			return nil, err
		}

		_, ok := keys.CutInt(kv.Key, keys.Actions)
		if ok && !there && a.Enqueued.Before(before) {
			stale = append(stale, kv.Key)
		}
	}

	return stale, nil
}

// LogGrace is how long the log of a unit or machine is kept after its last line,
// once the unit or machine is gone.
const LogGrace = 7 * 24 * time.Hour

// sweepLogs removes the old logs of units and machines that are gone.
func sweepLogs(ctx context.Context, s *state.State, before time.Time) error {
	old, err := state.Read(ctx, s, func(v *state.View) ([]string, error) { return oldLogs(v, before) })
	if err != nil {
		return err
	}

	for _, source := range old {
		err := s.Update(ctx, func(tx *state.Tx) error { return logs.Remove(tx, source) })
		if err != nil {
			return err
		}
	}

	return nil
}

// oldLogs returns the sources that do not exist any more and have logged nothing since before.
func oldLogs(v *state.View, before time.Time) (old []string, err error) {
	sources, err := logs.Sources(v, nil)
	if err != nil {
		return nil, err
	}

	for _, source := range sources {
		if there, err := v.Keys().HasUnguarded(sourceKey(source)); err != nil {
			return nil, err
		} else if there {
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

func sourceKey(source string) string {
	if charm.IsUnit(source) {
		return keys.Unit(source)
	}
	return keys.Machine(strings.TrimPrefix(source, "machine-"))
}

// sweepSecrets removes secrets whose owner is gone, notes in secrets about units and services that are
// gone, and contents that were left behind by their secret.
func sweepSecrets(ctx context.Context, s *state.State) error {
	all, err := state.Read(ctx, s, record.All)
	if err != nil {
		return err
	}

	for _, r := range all {
		err := s.Update(ctx, func(tx *state.Tx) error { return sweepSecret(tx, r.ID) })
		if err != nil && !s.Skips(err) {
			return err
		}
	}

	return removeStray(ctx, s, func(v *state.View) (stray []string, err error) {
		kvs, err := v.Keys().ListUnguarded(keys.SecretContents)
		if err != nil {
			return nil, err
		}

		for _, kv := range kvs {
			id, _, _ := strings.Cut(kv.Key[len(keys.SecretContents):], "/")
			there, err := v.Keys().HasUnguarded(keys.Secret(id))
			if err != nil {
				return nil, err
			}

			if !there {
				stray = append(stray, kv.Key)
			}
		}

		return stray, nil
	})
}

// sweepSecret removes a secret if its owner is gone, or else its consumers and grants that are gone.
func sweepSecret(tx *state.Tx, id string) error {
	r, err := record.Get(tx.View, id)
	if err != nil {
		return state.IgnoreNotFound(err)
	}

	index, err := record.IndexOf(tx.View, r.Owner)
	if err != nil {
		return err
	}
	if r.Owner != (secret.Owner{}) && !slices.Contains(index.Owned, id) {
		_, err := record.Remove(tx, r, 0)
		return err
	}

	consumers := len(r.Consumers)
	grants := len(r.Grants)

	for unit := range r.Consumers {
		there, err := tx.Keys().HasUnguarded(keys.Unit(unit))
		if err != nil {
			return err
		}

		if !there {
			delete(r.Consumers, unit)
		}
	}

	for _, g := range slices.Clone(r.Grants) {
		holds, err := isGrantHeld(tx, g, id)
		if err != nil {
			return err
		}

		if !holds {
			r.RemoveGrants(g)
		}
	}

	if len(r.Consumers) == consumers && len(r.Grants) == grants {
		return nil
	}
	return record.Put(tx, r)
}

// isGrantHeld reports whether the relation of a grant is there, or the service that was given the
// secret without one.
func isGrantHeld(tx *state.Tx, g secret.Grant, id string) (bool, error) {
	if g.Relation != secret.NoRelation {
		return tx.Keys().HasUnguarded(keys.Relation(g.Relation))
	}
	index, err := record.IndexOf(tx.View, secret.Owner{Service: g.Service})
	return slices.Contains(index.Granted, id), err
}
