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
	stored   []state.Storage
	declared map[string]charm.Storage // the storage that the charm declares, by name
	added    map[string]int           // how many storages the hook has requested, by name
}

// Storages returns the ID and location of each storage that is in place for the unit. It leaves out storage
// that is not yet bound, and storage that is being released.
func (c *Context) Storages(ctx context.Context) ([]hookapi.Storage, error) {
	return answer(ctx, c, func() (inPlace []hookapi.Storage, err error) {
		own, err := c.loadStorage(ctx)
		if err != nil {
			return nil, err
		}

		for _, s := range own.stored {
			if s.State != state.StoragePending && s.State != state.StorageUnbinding {
				inPlace = append(inPlace, hookapi.Storage{ID: s.ID, Location: s.Location})
			}
		}

		return inPlace, nil
	})
}

// AddStorage requests more storage for the unit: for each name in counts, that number of storages. The unit
// gets the storage when the hook succeeds, if that is still possible then. If the charm does not declare a name,
// or the unit cannot have that many storages in total, AddStorage returns an error and requests nothing.
func (c *Context) AddStorage(ctx context.Context, counts map[string]int) error {
	return c.do(ctx, func() error {
		own, err := c.loadStorage(ctx)
		if err != nil {
			return err
		}

		added := maps.Clone(own.added)
		for name, count := range counts {
			declared, ok := own.declared[name]
			if !ok {
				return fmt.Errorf("charm storage %q not found", name)
			}

			added[name] += count
			total := added[name] + state.CountStorages(own.stored, name)
			if err := declared.CheckCount(name, total); err != nil {
				return err
			}
		}

		own.added = added
		return nil
	})
}

// loadStorage returns the unit's storage, and the storage that the charm declares. It reads both only once.
func (c *Context) loadStorage(ctx context.Context) (*unitStorage, error) {
	unit, err := c.localUnit("") // the hook's own unit
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
		if err != nil {
			return nil, err
		}

		return &unitStorage{stored: stored, declared: ch.Meta.Storage, added: map[string]int{}}, nil
	})
}

// addStorage adds the storage that the hook has requested to the transaction. The storage gets the size and
// pool that the operator has chosen for the service. If a request is no longer possible, for example because the
// unit is dying, addStorage logs a warning and skips the request.
func (c *Context) addStorage(tx *state.Tx) error {
	if c.storage == nil || len(c.storage.added) == 0 {
		return nil
	}
	service, err := tx.Service(c.opts.Facts.Service)
	if err != nil {
		return err
	}

	for _, name := range slices.Sorted(maps.Keys(c.storage.added)) {
		directive := service.Storage[name]
		directive.Count = c.storage.added[name]
		_, err := tx.AddStorage(c.opts.Facts.Unit, name, directive)
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
