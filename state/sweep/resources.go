package sweep

import (
	"context"
	"slices"
	"strings"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// sweepResources leaves the blobs to sweepBlobs.
func sweepResources(ctx context.Context, s *state.State) error {
	stray, err := state.Read(ctx, s, strayResources)
	if err != nil {
		return err
	}
	for _, service := range stray {
		err := s.Update(ctx, func(tx *state.Tx) error {
			if _, there, err := tx.Keys().Get(keys.Service(service)); err != nil || there {
				return err
			}
			_, err := tx.Keys().RemoveBelow(keys.ServiceResources(service), keyspace.MaxRemovedKeys)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func strayResources(v *state.View) (services []string, err error) {
	kvs, err := v.Keys().List(keys.Resources)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		service, _, _ := strings.Cut(kv.Key[len(keys.Resources):], "/")
		there, err := v.Keys().HasUnguarded(keys.Service(service))
		if err != nil {
			return nil, err
		}
		if !there && charm.CheckService(service) == nil && !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	return services, nil
}
