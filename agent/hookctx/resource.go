package hookctx

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"bijou/hookenv/hookapi"
	"bijou/state"
	"bijou/state/osutil"
	"bijou/state/resources"
)

// Resource returns the path of a resource's file. It downloads the file unless the path already has the
// resource's current version. The file's directory survives upgrades of the charm.
func (c *Context) Resource(ctx context.Context, name string) (string, error) {
	r, err := c.readResource(ctx, name)
	if err != nil {
		return "", err
	}

	c.fetchMu.Lock() // not c.mu, so that the hook's other tools do not wait for a download
	defer c.fetchMu.Unlock()
	path := filepath.Join(c.opts.Resources, r.Name, r.File)
	if err := c.ensureFetched(ctx, r, path); err != nil {
		return "", fmt.Errorf("cannot get resource %q: %w", name, err)
	}

	return path, nil
}

// readResource reads the record of a resource. It returns [hookapi.ErrUnknownResource] if no file is attached
// for the resource.
func (c *Context) readResource(ctx context.Context, name string) (resources.Resource, error) {
	return answer(ctx, c, func() (r resources.Resource, err error) {
		if c.opts.Resources == "" {
			return r, errors.New("cannot get resources: only the hooks that a unit's agent runs have a directory for resources")
		}

		r, err = view(ctx, c, func(v *state.View) (resources.Resource, error) {
			return resources.Get(v, c.opts.Facts.Service, name)
		})
		if errors.Is(err, state.ErrNotFound) {
			err = fmt.Errorf("%w %q: no file is attached: juju attach-resource %s %s=FILE",
				hookapi.ErrUnknownResource, name, c.opts.Facts.Service, name)
		}

		return r, err
	})
}

// resourceRecord identifies the version of a resource that was downloaded last. It is stored as JSON, at
// recordPath.
type resourceRecord struct {
	SHA256 string `json:"sha256"`
	Size   int64  `json:"size"`
	File   string `json:"file"`
}

// recordPath returns the path of a resource's record. The record is beside the directory of the resource's
// file, since that file can have any name. The record's name begins with a dot, and no resource's name does.
func (c *Context) recordPath(r resources.Resource) string {
	return filepath.Join(c.opts.Resources, "."+r.Name+".json")
}

// ensureFetched downloads the resource to path and records its version, unless [isFetched] finds it there already.
func (c *Context) ensureFetched(ctx context.Context, r resources.Resource, path string) error {
	want := resourceRecord{SHA256: r.SHA256, Size: r.Size, File: r.File}
	recordPath := c.recordPath(r)
	if isFetched(recordPath, path, want) {
		return nil
	}

	if err := osutil.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}

	// Remove the record first, so that it never describes a different version than the file at path.
	if err := osutil.Remove(recordPath); err != nil {
		return err
	}
	if err := c.opts.State.DownloadBlob(ctx, r.SHA256, path, 0o644); err != nil {
		return err
	}

	data, err := json.Marshal(want)
	if err != nil {
		return err
	}

	return osutil.WriteFile(recordPath, data, 0o644)
}

// isFetched reports whether the file at path is the wanted resource. The record at recordPath must equal
// want, and the file must have the wanted size. isFetched does not compare the file's content.
func isFetched(recordPath, path string, want resourceRecord) bool {
	data, err := os.ReadFile(recordPath)
	if err != nil {
		return false
	}
	var recorded resourceRecord
	if json.Unmarshal(data, &recorded) != nil || recorded != want {
		return false
	}

	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == want.Size
}
