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

// Resource returns the path of a resource's file. It fetches the file at the first call for its version.
// The file's directory outlives upgrades of the charm.
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

func (c *Context) readResource(ctx context.Context, name string) (resources.Resource, error) {
	return answer(ctx, c, func() (r resources.Resource, err error) {
		if c.opts.Resources == "" {
			return r, errors.New("cannot get resources: only a unit's agent has a directory for them")
		}

		r, err = view(ctx, c, func(v *state.View) (resources.Resource, error) {
			return resources.Get(v, c.opts.Facts.Service, name)
		})
		if errors.Is(err, state.ErrNotFound) {
			err = fmt.Errorf("%w %q: no file attached: juju attach-resource %s %s=FILE",
				hookapi.ErrUnknownResource, name, c.opts.Facts.Service, name)
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
func (c *Context) recordPath(r resources.Resource) string {
	return filepath.Join(c.opts.Resources, "."+r.Name+".json")
}

// ensureFetched downloads the resource to path, unless the same content is there already.
func (c *Context) ensureFetched(ctx context.Context, r resources.Resource, path string) error {
	want := resourceRecord{SHA256: r.SHA256, Size: r.Size, File: r.File}
	note := c.recordPath(r)
	if isFetched(note, path, want) {
		return nil
	}

	if err := osutil.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := osutil.Remove(note); err != nil {
		return err
	}
	if err := c.opts.State.DownloadBlob(ctx, r.SHA256, path, 0o644); err != nil {
		return err
	}

	data, err := json.Marshal(want)
	if err != nil {
		return err
	}

	return osutil.WriteFile(note, data, 0o644)
}

// isFetched reports whether path already has the resource: the note beside it names the same one, and the
// size is right.
func isFetched(note, path string, want resourceRecord) bool {
	data, err := os.ReadFile(note)
	var noted resourceRecord
	if err != nil || json.Unmarshal(data, &noted) != nil || noted != want {
		return false
	}
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Size() == want.Size
}
