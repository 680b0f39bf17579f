// Package resources keeps the files that operators have given services for their charms. Their contents are
// blobs, which package state keeps.
package resources

import (
	"fmt"
	"time"

	"bijou/state"
	"bijou/state/keys"
	"bijou/state/keyspace"
)

const (
	// MaxSize is the largest file that a resource can be, in bytes.
	MaxSize = keyspace.MaxFile
	// MaxPerService is how many resources a service can have.
	MaxPerService = keyspace.MaxRemovedKeys
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

// Put gives a service the next version of a resource. [state.State.PutFile] must have stored its content. It
// changes nothing if the content is the same as before. It returns state.ErrNotFound if there is no such service,
// or if its charm has no such resource, and state.ErrDead if the service is dying.
func Put(tx *state.Tx, service string, r Resource) (_ Resource, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot give application %q resource %q: %w", service, r.Name, err)
		}
	}()

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
	old, there, err := keyspace.Load[Resource](tx.Keys(), key)
	if err != nil {
		return r, err
	}
	if there && old.SHA256 == r.SHA256 && old.File == r.File {
		old.Name = r.Name
		return old, nil
	}

	all, err := List(tx.View, s.Name)
	if err != nil {
		return r, err
	}
	if !there && len(all) >= MaxPerService {
		return r, fmt.Errorf("it already has %d resources, the most that one can have", len(all))
	}

	r.Version = old.Version + 1
	s.ResourcesVersion++
	if err := tx.Keys().ReferToBlob(r.SHA256); err != nil {
		return r, err
	}
	if err := tx.Keys().Put(keys.Service(s.Name), s); err != nil {
		return r, err
	}

	return r, tx.Keys().Put(key, r)
}

// Get reads a service's resource. state.ErrNotFound.
func Get(v *state.View, service, name string) (Resource, error) {
	r, err := keyspace.LoadExisting[Resource](v.Keys(), keys.Resource(service, name),
		"application %q has no resource %q attached", service, name)
	r.Name = name
	return r, err
}

// List reads the resources of a service, by name.
func List(v *state.View, service string) ([]Resource, error) {
	return keyspace.LoadChildren(v.Keys(), keys.ServiceResources(service), func(r *Resource, name string) {
		r.Name = name
	})
}
