package state

import (
	"context"
	"slices"
	"strings"
	"time"

	"bijou/state/charm"
)

// sweepActions removes the actions of units that are gone, if they were asked for
// before that time.
func (s *State) sweepActions(ctx context.Context, before time.Time) error {
	var old []int
	err := s.View(ctx, func(v *View) (err error) {
		old, err = v.oldActions(before)
		return err
	})
	if err != nil {
		return err
	}
	for ids := range slices.Chunk(old, maxRemovedKeys) {
		err := s.Update(ctx, func(tx *Tx) error {
			for _, id := range ids {
				tx.remove(actionKey(id)) // no condition: ids are never used again
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// oldActions lists what sweepActions removes.
func (v *View) oldActions(before time.Time) (old []int, err error) {
	kvs, err := v.list(actionsPrefix)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		a, err := decode[Action](kv)
		if err != nil {
			return nil, err
		}
		there, err := v.hasUnguarded(unitKey(a.Unit))
		if err != nil {
			return nil, err
		}
		id, ok := cutInt(kv.Key, actionsPrefix)
		if ok && !there && a.Enqueued.Before(before) {
			old = append(old, id)
		}
	}
	return old, nil
}

// sweepResources removes the resources of services that are gone. Their blobs
// go as all blobs do that nothing refers to.
func (s *State) sweepResources(ctx context.Context) error {
	var stray []string
	err := s.View(ctx, func(v *View) (err error) {
		stray, err = v.strayResources()
		return err
	})
	if err != nil {
		return err
	}
	for _, service := range stray {
		err := s.Update(ctx, func(tx *Tx) error {
			if _, there, err := tx.get(serviceKey(service)); err != nil || there {
				return err
			}
			_, err := tx.removeBelow(serviceResourcesPrefix(service), maxRemovedKeys)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// strayResources lists the services that have resources but no record.
func (v *View) strayResources() (services []string, err error) {
	kvs, err := v.list(resourcesPrefix)
	if err != nil {
		return nil, err
	}
	for _, kv := range kvs {
		service, _, _ := strings.Cut(kv.Key[len(resourcesPrefix):], "/")
		there, err := v.hasUnguarded(serviceKey(service))
		if err != nil {
			return nil, err
		}
		if !there && charm.CheckService(service) == nil && !slices.Contains(services, service) {
			services = append(services, service)
		}
	}
	return services, nil
}

// addBlobsOfOperators adds what resources and the outputs of actions refer to.
func (v *View) addBlobsOfOperators(used map[string]bool) error {
	kvs, err := v.list(resourcesPrefix)
	if err != nil {
		return err
	}
	for _, kv := range kvs {
		r, err := decode[Resource](kv)
		if err != nil {
			return err
		}
		used[r.SHA256] = true
	}
	if kvs, err = v.list(actionsPrefix); err != nil {
		return err
	}
	for _, kv := range kvs {
		a, err := decode[Action](kv)
		if err != nil {
			return err
		}
		used[a.Output.Blob] = true
	}
	return nil
}
