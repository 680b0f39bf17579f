// Package resources records the files that operators have attached to services for their charms. Package
// state stores their contents, as blobs.
package resources

import (
	"fmt"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

const (
	// MaxSize limits the file of a resource, in bytes.
	MaxSize = keyspace.MaxFile
	// MaxPerService is how many resources a service can have.
	MaxPerService = keyspace.MaxRemovedKeys
)

// Resource is a file that an operator has attached to a service for its charm. Its content is the blob with
// the sum SHA256.
type Resource struct {
	Name string `json:"-"`

	SHA256  string    `json:"sha256"` // in hex
	Size    int64     `json:"size"`   // in bytes
	File    string    `json:"file"`   // the file's name on the units
	Version int       `json:"version"`
	Origin  string    `json:"origin,omitempty"` // the path of the file, or the name of the store of charms
	Added   time.Time `json:"added"`

	// Revision is the resource's revision in the store, if Origin is a store. Otherwise it is 0.
	Revision int `json:"store-revision,omitempty"`
}

// Identity returns the resource's version, which distinguishes a resource from its other versions.
func (r Resource) Identity() any { return r.Version }

// Put gives a service the next version of a resource, and returns the resource as it is stored. The caller
// must have stored the content with [state.State.PutFile]. Put changes nothing if the content and the file's
// name are the same as in the current version. It returns [state.ErrNotFound] if the service does not exist
// or its charm does not declare the resource, and [state.ErrDead] if the service is dying.
func Put(tx *state.Tx, service string, r Resource) (Resource, error) {
	stored, err := put(tx, service, r)
	if err != nil {
		return stored, fmt.Errorf("cannot attach resource %q to application %q: %w", r.Name, service, err)
	}
	return stored, nil
}

// put does what Put does, but does not wrap its errors.
func put(tx *state.Tx, service string, r Resource) (Resource, error) {
	s, err := tx.AliveService(service)
	if err != nil {
		return r, err
	}

	c, err := tx.Charm(s.Charm)
	if err != nil {
		return r, err
	}
	if r.File, err = c.Meta.ResourceFile(r.Name); err != nil {
		return r, keyspace.Refuse(state.ErrNotFound, "%v", err)
	}

	key := keys.Resource(s.Name, r.Name)
	old, exists, err := keyspace.Load[Resource](tx.Keys(), key)
	if err != nil {
		return r, err
	}
	isSame := old.SHA256 == r.SHA256 && old.File == r.File
	if exists && isSame {
		old.Name = r.Name // is not part of the record
		return old, nil
	}

	if !exists {
		if err := checkCount(tx.View, s.Name); err != nil {
			return r, err
		}
	}

	r.Version = old.Version + 1
	// By this number in the service's record, the units' agents notice the new resource.
	s.ResourcesVersion++
	if err := tx.Keys().ReferToBlob(r.SHA256); err != nil {
		return r, err
	}
	if err := tx.Keys().Put(keys.Service(s.Name), s); err != nil {
		return r, err
	}

	return r, tx.Keys().Put(key, r)
}

// checkCount returns an error if the service cannot have another resource.
func checkCount(v *state.View, service string) error {
	attached, err := List(v, service)
	if err != nil {
		return err
	}
	if len(attached) >= MaxPerService {
		return fmt.Errorf("the application already has %d resources, which is the limit", len(attached))
	}
	return nil
}

// Get reads a service's resource. It returns [state.ErrNotFound] if the service does not have the resource.
func Get(v *state.View, service, name string) (Resource, error) {
	r, err := keyspace.LoadExisting[Resource](v.Keys(), keys.Resource(service, name),
		"application %q has no resource %q attached", service, name)
	r.Name = name
	return r, err
}

// List reads the resources of a service, sorted by name.
func List(v *state.View, service string) ([]Resource, error) {
	return keyspace.LoadChildren(v.Keys(), keys.ServiceResources(service), func(r *Resource, name string) {
		r.Name = name
	})
}
