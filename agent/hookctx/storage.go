package hookctx

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
)

// unitStorage holds the unit's storage as it was read, and the storage that the hook has requested.
type unitStorage struct {
	stored []state.Storage
	wanted map[string]charm.Storage // the storage that the charm declares, by name
	added  map[string]int           // how many storages the hook has requested, by name
}

// Storages returns the unit's storage that is in place, with its locations.
func (c *Context) Storages(ctx context.Context) ([]hookapi.Storage, error) {
	return answer(ctx, c, func() (all []hookapi.Storage, err error) {
		own, err := c.loadStorage(ctx)
		if err != nil {
			return nil, err
		}

		for _, s := range own.stored {
			if s.State != state.StoragePending && s.State != state.StorageUnbinding {
				all = append(all, hookapi.Storage{ID: s.ID, Location: s.Location})
			}
		}

		return all, nil
	})
}

// AddStorage requests further storage for the unit, with a count for each name. The unit gets the storage
// when the hook succeeds. It returns an error, and requests nothing, if the charm does not allow one of the
// counts.
func (c *Context) AddStorage(ctx context.Context, counts map[string]int) error {
	return c.do(ctx, func() error {
		own, err := c.loadStorage(ctx)
		if err != nil {
			return err
		}

		sum := maps.Clone(own.added)
		for name, count := range counts {
			wants, there := own.wanted[name]
			if !there {
				return fmt.Errorf("charm storage %q not found", name)
			}

			sum[name] += count
			if err := wants.CheckCount(name, sum[name]+state.CountStorages(own.stored, name)); err != nil {
				return err
			}
		}

		own.added = sum
		return nil
	})
}

// loadStorage returns the unit's storage and the charm's declarations of it. It reads them once.
func (c *Context) loadStorage(ctx context.Context) (*unitStorage, error) {
	unit, err := c.localUnit("")
	if err != nil {
		return nil, err
	}

	return loadOnce(ctx, c, &c.storage, func(v *state.View) (*unitStorage, error) {
		u, err := v.Unit(unit)
		if err != nil {
			return nil, err
		}

		ch, err := v.Charm(u.Charm)
		if err != nil {
			return nil, err
		}
		stored, err := v.OwnStorages(unit)
		return &unitStorage{stored: stored, wanted: ch.Meta.Storage, added: map[string]int{}}, err
	})
}

// addStorage adds the storage that the hook has requested to the transaction. The size and pool are those
// that the operator has chosen for the service. It skips a request that has become impossible, and logs a
// message.
func (c *Context) addStorage(tx *state.Tx) error {
	if c.storage == nil || len(c.storage.added) == 0 {
		return nil
	}
	s, err := tx.Service(c.opts.Facts.Service)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(c.storage.added)) {
		d := s.Storage[name]
		d.Count = c.storage.added[name]
		_, err := tx.AddStorage(c.opts.Facts.Unit, name, d)
		if errors.Is(err, state.ErrDead) || errors.Is(err, state.ErrNoStorage) {
			c.opts.Log("WARNING", err.Error())
			continue
		}
		if err != nil {
			return err
		}
	}

	return nil
}
