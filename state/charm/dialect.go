package charm

import (
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Dialect is the generation of charms to which the hook tools adapt; see docs/reference/hook-tools.md.
type Dialect string

// The two dialects.
const (
	Classic Dialect = "classic"
	Modern  Dialect = "modern"
)

// ParseDialect parses the name of a dialect. It accepts "", which stands for no dialect.
func ParseDialect(s string) (Dialect, error) {
	if d := Dialect(s); d == "" || d == Classic || d == Modern {
		return d, nil
	}
	return "", fmt.Errorf("unknown hook dialect %q: want classic or modern", s)
}

// Dialect returns the charm's dialect. It is the dialect in the metadata, if the metadata names one.
// Otherwise it is modern if the charm has a feature from after 2012, and classic otherwise. mark is the
// reason, in words.
func (c *Charm) Dialect() (d Dialect, mark string) {
	if c.Meta.HookDialect != "" {
		return c.Meta.HookDialect, "its metadata has hook-dialect"
	}
	if c.Meta.modern != "" {
		return Modern, "its metadata has " + c.Meta.modern // the result of modernKey
	}
	if name := c.modernFile(); name != "" {
		return Modern, "it has " + name
	}

	return Classic, "nothing in the charm requires the modern dialect"
}

// modernKey returns a key of metadata.yaml that was introduced after 2012. Without such a key, it returns "a
// list of series" if there is one, since a list is also from after 2012, while a single series is older.
// Otherwise it returns "".
func modernKey(keys map[string]yaml.Node) string {
	for _, key := range []string{"assumes", "min-juju-version", "resources", "storage", "containers", "extra-bindings", "devices", "terms"} {
		if _, ok := keys[key]; ok {
			return key
		}
	}

	series := keys["series"]
	if series.Kind == yaml.AliasNode {
		series = *series.Alias
	}
	if series.Kind == yaml.SequenceNode {
		return "a list of series"
	}

	return ""
}

// modernFile returns the name of a file that only charms from after 2012 have, or "" if there is no such
// file. For the same charm it always returns the same file.
func (c *Charm) modernFile() string {
	for _, name := range []string{"dispatch", "charmcraft.yaml", "manifest.yaml"} {
		if c.hasFile(name) {
			return name
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		if isCharmHelpers(name, c.files[name]) {
			return name
		}
	}

	return ""
}

// isCharmHelpers reports whether a file belongs to the library charmhelpers.
func isCharmHelpers(name string, mode fs.FileMode) bool {
	base := path.Base(name)
	// In a wheelhouse the library is an archive.
	isArchive := strings.HasPrefix(base, "charmhelpers-")
	isInside := strings.Contains("/"+path.Dir(name)+"/", "/charmhelpers/")
	// A regular file has this name by coincidence.
	isDirectory := base == "charmhelpers" && !mode.IsRegular()
	return isArchive || isInside || isDirectory
}
