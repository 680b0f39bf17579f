package state

import (
	"context"
	"slices"
	"strings"

	"bijou/state/charm"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

// sweepResources leaves the blobs to sweepBlobs.
func (s *State) sweepResources(ctx context.Context) error {
	stray, err := Read(ctx, s, (*View).strayResources)
	if err != nil {
		return err
	}
	for _, service := range stray {
		err := s.Update(ctx, func(tx *Tx) error {
			if _, there, err := tx.keys.Get(keys.Service(service)); err != nil || there {
				return err
			}
			_, err := tx.keys.RemoveBelow(keys.ServiceResources(service), keyspace.MaxRemovedKeys)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *View) strayResources() (services []string, err error) {
	kvs, err := v.keys.List(keys.Resources)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		service, _, _ := strings.Cut(kv.Key[len(keys.Resources):], "/")
		there, err := v.keys.HasUnguarded(keys.Service(service))
		if err != nil {
			return nil, err
		}
		if !there && charm.CheckService(service) == nil && !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	return services, nil
}
