package state

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"bijou/state/keys"
	"bijou/state/keyspace"
	"bijou/state/osutil"
)

const (
	// MaxResource is the largest file that a resource can be, in bytes.
	MaxResource = keyspace.MaxFile
	// MaxResources is how many resources a service can have.
	MaxResources = keyspace.MaxRemovedKeys
)

// Resource is a file that an operator has given a service for its charm. The
// content is the blob SHA256.
type Resource struct {
	Name string `json:"-"`

	SHA256  string    `json:"sha256"` // in hex
	Size    int64     `json:"size"`   // in bytes
	File    string    `json:"file"`   // how it is called on the units
	Version int       `json:"version"`
	Origin  string    `json:"origin,omitempty"` // the path that it was given as
	Added   time.Time `json:"added"`

	Revision int `json:"store-revision,omitempty"` // the store's number, where Origin is a store; 0: it has none
}

// Identity tells one file from the next.
func (r Resource) Identity() any { return r.Version }

// PutResource gives a service the next version of a resource. PutFile must have stored its content. It
// changes nothing if the content is the same as before. It returns ErrNotFound if there is no such service,
// or if its charm has no such resource, and ErrDead if the service is dying.
func (tx *Tx) PutResource(service string, r Resource) (_ Resource, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot give service %q resource %q: %w", service, r.Name, err)
		}
	}()

	s, err := tx.aliveService(service)
	if err != nil {
		return r, err
	}

	c, err := tx.Charm(s.Charm)
	if err != nil {
		return r, err
	}
	if r.File, err = c.Meta.ResourceFile(r.Name); err != nil {
		return r, refuse(ErrNotFound, "%v", err)
	}

	key := keys.Resource(s.Name, r.Name)
	old, there, err := keyspace.Load[Resource](tx.keys, key)
	if err != nil {
		return r, err
	}
	if there && old.SHA256 == r.SHA256 && old.File == r.File {
		old.Name = r.Name
		return old, nil
	}

	all, err := tx.Resources(s.Name)
	if err != nil {
		return r, err
	}
	if !there && len(all) >= MaxResources {
		return r, fmt.Errorf("it has %d resources already, which is the most", len(all))
	}

	r.Version = old.Version + 1
	s.ResourcesVersion++
	if err := tx.keys.ReferToBlob(r.SHA256); err != nil {
		return r, err
	}
	if err := tx.keys.Put(keys.Service(s.Name), s); err != nil {
		return r, err
	}

	return r, tx.keys.Put(key, r)
}

// Resource reads a service's resource. ErrNotFound.
func (v *View) Resource(service, name string) (Resource, error) {
	r, err := keyspace.LoadExisting[Resource](v.keys, keys.Resource(service, name),
		"service %q was given no resource %q", service, name)
	r.Name = name
	return r, err
}

// Resources reads the resources of a service, by name.
func (v *View) Resources(service string) ([]Resource, error) {
	return keyspace.LoadChildren(v.keys, keys.ServiceResources(service), func(r *Resource, name string) {
		r.Name = name
	})
}

// DownloadBlob verifies a blob and puts it into a file, which is replaced at once. ErrNotFound.
func (s *State) DownloadBlob(ctx context.Context, sum, path string, mode fs.FileMode) error {
	blob, err := s.OpenBlob(ctx, sum)
	if err != nil {
		return err
	}
	defer blob.Close()

	file, err := osutil.Create(path, mode)
	if err != nil {
		return err
	}
	defer file.Discard()
	if _, err := io.Copy(file, blob); err != nil {
		return err
	}

	return file.Commit()
}

// ReferencedBlobs returns the sums of all blobs that something refers to.
func (v *View) ReferencedBlobs() (map[string]bool, error) {
	used := map[string]bool{}

	for _, prefix := range []string{keys.Charms, keys.Resources, keys.Actions, keys.Tools, keys.SecretContents, keys.Relations, keys.Services, keys.Units} {
		kvs, err := v.keys.List(prefix)
		if err != nil {
			return nil, err
		}

		for _, kv := range kvs {
			if !refersToBlob(kv.Key) {
				continue
			}
			record, err := keyspace.Decode[blobReferences](kv)
			if err != nil {
				return nil, err
			}

			used[record.SHA256] = true
			used[record.Blob] = true
			used[record.Output.Blob] = true
		}
	}

	return used, nil
}

// blobReferences has the sums in any record that refers to a blob: of a charm, resource or
// tool, of a settings node, of an action, of a secret's content.
type blobReferences struct {
	SHA256 string `json:"sha256"`
	Blob   string `json:"blob"`
	Output Output `json:"output"`
}

// refersToBlob reports whether the key is one of the settings nodes of relations, services and units.
func refersToBlob(key string) bool {
	parts := strings.Split(key, "/")
	switch parts[0] + "/" {
	case keys.Relations:
		return len(parts) > 3 && (parts[2] == "settings" || parts[2] == "apps")
	case keys.Services:
		return len(parts) > 2 && key == keys.LeaderSettings(parts[1])
	case keys.Units:
		return len(parts) == 4 && parts[3] == "state"
	}

	return true
}
