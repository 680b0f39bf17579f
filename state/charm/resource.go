package charm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"bijou/state/lazyregexp"
)

// Resource is a file that the operator gives with the charm.
type Resource struct {
	Type        string `json:"type" yaml:"type"` // empty is "file"; resources of other types cannot be given
	Filename    string `json:"filename,omitempty" yaml:"filename"`
	Description string `json:"description,omitempty" yaml:"description"`
}

// resourceName is strict since a resource's name is a folder's.
var resourceName = lazyregexp.New(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$`)

// ResourceFile returns the name of a resource's file on the units. It is an error if the
// charm has no resource of that name, or it is not a file.
func (m *Meta) ResourceFile(name string) (string, error) {
	r, ok := m.Resources[name]
	switch {
	case !ok && len(m.Resources) == 0:
		return "", fmt.Errorf("the charm has no resource %q: it has none", name)
	case !ok:
		return "", fmt.Errorf("the charm has no resource %q: it has %s", name, strings.Join(slices.Sorted(maps.Keys(m.Resources)), ", "))
	case r.Type != "" && r.Type != "file":
		return "", fmt.Errorf("resource %q is of type %q: only files can be given", name, r.Type)
	case r.Filename == "":
		return name, nil
	}
	return path.Base(r.Filename), nil
}

func (m *Meta) checkResources() error {
	for _, name := range slices.Sorted(maps.Keys(m.Resources)) {
		if err := checkName("resource", name, resourceName.MatchString, `letters, digits, dots, dashes and underscores`); err != nil {
			return err
		}
		file := m.Resources[name].Filename
		if file != "" && (path.Base(file) == ".." || path.Base(file) == "." || path.Base(file) == "/" || len(file) > 2*maxName || strings.ContainsRune(file, 0)) {
			return fmt.Errorf("resource %q: invalid file name %.60q", name, file)
		}
	}
	return nil
}
