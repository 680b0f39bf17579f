package juju

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bijou/state"
	"bijou/state/charm"
	"bijou/state/osutil"
	"bijou/state/resources"
)

// parseResourceFiles parses words NAME=FILE, and returns the files by the names of their resources. It checks
// that the charm declares each resource as a file, and that each file is a regular file within the size limit.
func parseResourceFiles(meta *charm.Meta, words []string) (map[string]string, error) {
	files, err := parsePairs(words)
	if err != nil {
		return nil, err
	}

	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, err := meta.ResourceFile(name); err != nil {
			return nil, err
		}
		if err := checkResourceFile(files[name]); err != nil {
			return nil, charm.Invalidf("cannot attach resource %q: %w", name, err)
		}
	}

	return files, nil
}

// checkResourceFile returns an error unless path is a regular file within the size limit.
func checkResourceFile(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%q is not a regular file", path)
	case info.Size() > resources.MaxSize:
		return fmt.Errorf("%q has %d bytes; the limit is %d (%d MiB)",
			path, info.Size(), int64(resources.MaxSize), resources.MaxSize>>20)
	}

	return nil
}

// sumResource returns the checksum under which the file would be stored.
func sumResource(path string) (string, error) {
	if err := checkResourceFile(path); err != nil {
		return "", err
	}
	sum, _, err := osutil.DigestFile(path)
	return sum, err
}

// storeResources stores the content of the files, and returns the resources in the order of their names. It does
// not attach them to a service yet.
func (o *operator) storeResources(s state.Writer, files map[string]string) (stored []resources.Resource, err error) {
	for _, name := range slices.Sorted(maps.Keys(files)) {
		r, err := o.storeResource(s, name, files[name])
		if err != nil {
			return nil, charm.Invalidf("cannot attach resource %q: %w", name, err)
		}
		stored = append(stored, r)
	}

	return stored, nil
}

// storeResource stores the content of one file, and returns the resource with the file's absolute path as its
// origin.
func (o *operator) storeResource(s state.Writer, name, path string) (r resources.Resource, err error) {
	file, err := os.Open(path)
	if err != nil {
		return r, err
	}
	defer file.Close()

	origin, err := filepath.Abs(path)
	if err != nil {
		return r, err
	}

	r = resources.Resource{Name: name, Origin: origin, Added: time.Now().UTC()}
	r.SHA256, r.Size, err = s.PutFile(o.ctx, file)
	return r, err
}

// putResources attaches stored resources to the service.
func putResources(tx *state.Tx, service string, given []resources.Resource) error {
	for _, r := range given {
		if _, err := resources.Put(tx, service, r); err != nil {
			return err
		}
	}
	return nil
}

// charmOf returns the charm of a service.
func charmOf(v *state.View, service string) (state.Charm, error) {
	s, err := v.Service(service)
	if err != nil {
		return state.Charm{}, err
	}
	return v.Charm(s.Charm)
}

// noteMissingResources prints a hint for each resource that the charm declares and that has no file. It leaves
// out resources that are not files, since they cannot be attached.
func (o *operator) noteMissingResources(meta *charm.Meta, service string, files map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(meta.Resources)) {
		_, err := meta.ResourceFile(name)
		if _, given := files[name]; !given && err == nil {
			o.note("hint: the charm may need its resource %q: juju attach-resource %s %s=FILE",
				name, service, name)
		}
	}
}
