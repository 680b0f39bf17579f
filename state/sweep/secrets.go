package sweep

import (
	"context"
	"errors"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/secret"
	"bijou/state/secrets"
)

// sweepSecrets removes secrets whose unit or service is gone, what secrets remember of units
// and services that are, and contents that did not go with their secret.
func sweepSecrets(ctx context.Context, s *state.State) error {
	all, err := state.Read(ctx, s, secrets.All)
	for _, r := range all {
		if err == nil {
			err = s.Update(ctx, func(tx *state.Tx) error { return sweepSecret(tx, r.ID) })
		}
	}
	if err != nil {
		return err
	}
	return removeStray(ctx, s, func(v *state.View) (stray []string, err error) {
		kvs, err := v.Keys().ListUnguarded(keys.SecretContents)
		for _, kv := range kvs {
			id, _, _ := strings.Cut(kv.Key[len(keys.SecretContents):], "/")
			there, herr := v.Keys().HasUnguarded(keys.Secret(id))
			if err = errors.Join(err, herr); err == nil && !there {
				stray = append(stray, kv.Key)
			}
		}
		return stray, err
	})
}

func sweepSecret(tx *state.Tx, id string) error {
	r, err := secrets.Get(tx.View, id)
	if err != nil {
		if errors.Is(err, state.ErrNotFound) {
			return nil
		}
		return err
	}
	index, err := secrets.IndexOf(tx.View, r.Owner)
	if err == nil && r.Owner != (secret.Owner{}) && !slices.Contains(index.Owned, id) {
		_, err := secrets.Remove(tx, r, 0)
		return err
	}
	consumers, grants := len(r.Consumers), len(r.Grants)
	for unit := range r.Consumers {
		there, herr := tx.Keys().HasUnguarded(keys.Unit(unit))
		if err = errors.Join(err, herr); err == nil && !there {
			delete(r.Consumers, unit)
		}
	}
	for _, g := range slices.Clone(r.Grants) {
		holds, herr := tx.Keys().HasUnguarded(keys.Relation(g.Relation))
		if g.Relation == secret.NoRelation {
			index, herr = secrets.IndexOf(tx.View, secret.Owner{Service: g.Service})
			holds = slices.Contains(index.Granted, id)
		}
		if err = errors.Join(err, herr); err == nil && !holds {
			r.RemoveGrants(g)
		}
	}
	if err != nil || len(r.Consumers) == consumers && len(r.Grants) == grants {
		return err
	}
	return secrets.Put(tx, r)
}
