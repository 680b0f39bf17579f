package hookctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/charm"
	"bijou/state/durable"
)

// unitStorage is the unit's storage as it was read, and what the hook has asked for.
type unitStorage struct {
	stored []state.Storage
	wanted map[string]charm.Storage // what the unit's charm has, by name
	added  map[string]int           // by name
}

// Storages lists what the unit has, and where.
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

// AddStorage gives the unit so many more of each with the hook's success.
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
		stored, err := v.UnitStorages(unit)
		return &unitStorage{stored, ch.Meta.Storage, map[string]int{}}, err
	})
}

// addStorage gives the unit what its hook has asked for, as the operator's directive says, but for
// what it cannot have any more.
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

// Resource returns the path of a resource's file, which is fetched at the first call for
// its version, into a folder that outlives the charm's upgrades.
func (c *Context) Resource(ctx context.Context, name string) (string, error) {
	r, err := c.readResource(ctx, name)
	if err != nil {
		return "", err
	}
	c.fetchMu.Lock() // apart from c.mu: other tools of the hook do not wait for a download
	defer c.fetchMu.Unlock()
	path := filepath.Join(c.opts.Resources, r.Name, r.File)
	if err := c.ensureFetched(ctx, r, path); err != nil {
		return "", fmt.Errorf("cannot get resource %q: %w", name, err)
	}
	return path, nil
}

func (c *Context) readResource(ctx context.Context, name string) (state.Resource, error) {
	return answer(ctx, c, func() (r state.Resource, err error) {
		if c.opts.Resources == "" {
			return r, errors.New("cannot get resources: there is no folder for them outside of a unit's agent")
		}
		r, err = view(ctx, c, func(v *state.View) (state.Resource, error) { return v.Resource(c.opts.Facts.Service, name) })
		if errors.Is(err, state.ErrNotFound) {
			err = fmt.Errorf("%w %q: it was not given: juju attach-resource %s %s=FILE", hookapi.ErrUnknownResource, name, c.opts.Facts.Service, name)
		}
		return r, err
	})
}

// resourceRecord names the version that was fetched last.
type resourceRecord struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	File   string `json:"file"`
}

// recordPath is beside the folder with the resource's own file, which may have any name. No
// resource's name begins with a dot.
func (c *Context) recordPath(r state.Resource) string {
	return filepath.Join(c.opts.Resources, "."+r.Name+".json")
}

func (c *Context) ensureFetched(ctx context.Context, r state.Resource, path string) error {
	want := resourceRecord{SHA256: r.SHA256, Size: r.Size, File: r.File}
	note := c.recordPath(r)
	if isFetched(note, path, want) {
		return nil
	}
	if err := durable.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := durable.Remove(note); err != nil {
		return err
	}
	if err := c.opts.State.DownloadBlob(ctx, r.SHA256, path, 0o644); err != nil {
		return err
	}
	data, err := json.Marshal(want)
	if err != nil {
		return err
	}
	return durable.WriteFile(note, data, 0o644)
}

func isFetched(note, path string, want resourceRecord) bool {
	data, err := os.ReadFile(note)
	var noted resourceRecord
	if err != nil || json.Unmarshal(data, &noted) != nil || noted != want {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == want.Size
}
