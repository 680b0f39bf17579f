package charm

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Resource is a file that the operator gives with the charm.
type Resource struct {
	Type        string `json:"type" yaml:"type"` // "file", if it is empty; anything else cannot be given
	Filename    string `json:"filename,omitempty" yaml:"filename"`
	Description string `json:"description,omitempty" yaml:"description"`
}

// resourceName is what a resource may be called: it names a folder.
var resourceName = regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$`)

// ResourceFile is what the file of a resource is called on the units. An error
// says that the charm has no resource of that name, or none that is a file.
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

// checkResources checks what names files and folders on the units.
func (m *Meta) checkResources() error {
	for _, name := range slices.Sorted(maps.Keys(m.Resources)) {
		if err := checkName("resource", name, resourceName, `letters, digits, dots, dashes and underscores`); err != nil {
			return err
		}
		file := m.Resources[name].Filename
		if file != "" && (path.Base(file) == ".." || path.Base(file) == "." || path.Base(file) == "/" || len(file) > 2*maxName || strings.ContainsRune(file, 0)) {
			return fmt.Errorf("resource %q: invalid file name %.60q", name, file)
		}
	}
	return nil
}
