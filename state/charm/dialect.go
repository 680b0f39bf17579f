package charm

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"gopkg.in/yaml.v3"
)

// Dialect is the generation of charms that the hook tools answer as; see
// docs/reference/hook-tools.md.
type Dialect string

// The two dialects.
const (
	Classic Dialect = "classic"
	Modern  Dialect = "modern"
)

// ParseDialect reads a dialect's name, as operators and charms give it; "" is none.
func ParseDialect(s string) (Dialect, error) {
	if d := Dialect(s); d == "" || d == Classic || d == Modern {
		return d, nil
	}
	return "", fmt.Errorf("unknown hook dialect %q: want classic or modern", s)
}

// Dialect returns the charm's dialect: the one in its metadata; else modern, if the charm has a mark of a
// time after 2012; else classic. mark says for people how that was decided.
func (c *Charm) Dialect() (d Dialect, mark string) {
	if c.Meta.HookDialect != "" {
		return c.Meta.HookDialect, "its metadata says hook-dialect"
	}
	if c.Meta.modern != "" {
		return Modern, "its metadata has " + c.Meta.modern
	}
	if name := c.modernFile(); name != "" {
		return Modern, "it has " + name
	}

	return Classic, "it has no mark of the modern one"
}

// modernKey returns a key of metadata.yaml that came after 2012; "" if there is none. A
// `series` that is a single word is older than the list.
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

// modernFile returns the name of a file that came after 2012, always the same one; "" if
// there is none.
func (c *Charm) modernFile() string {
	for _, name := range []string{"dispatch", "charmcraft.yaml", "manifest.yaml"} {
		if c.hasFile(name) {
			return name
		}
	}

	for _, name := range slices.Sorted(maps.Keys(c.files)) {
		mode := c.files[name]
		packed := strings.HasPrefix(path.Base(name), "charmhelpers-") // in a wheelhouse
		inside := strings.Contains("/"+path.Dir(name)+"/", "/charmhelpers/")
		if packed || inside || path.Base(name) == "charmhelpers" && !mode.IsRegular() {
			return name
		}
	}

	return ""
}
