package charm

import (
	"fmt"
	"path"
	"strings"

	"gopkg.in/yaml.v3"
)

// Dialect says which generation of charms the hook tools speak to;
// spec/hook-tools.md, "Dialects".
type Dialect string

// The two dialects.
const (
	Classic Dialect = "classic"
	Modern  Dialect = "modern"
)

// ParseDialect reads the word an operator or a charm says.
func ParseDialect(s string) (Dialect, error) {
	switch d := Dialect(s); d {
	case Classic, Modern:
		return d, nil
	}
	return "", fmt.Errorf("unknown hook dialect %q: want classic or modern", s)
}

// Dialect is what the charm asks for in its metadata; else modern, if the charm
// shows a mark that came after 2012; else classic.
func (c *Charm) Dialect() Dialect {
	if c.Meta.HookDialect != "" {
		return c.Meta.HookDialect
	}
	if c.Meta.modern || c.modernFiles() {
		return Modern
	}
	return Classic
}

// modernKeys looks for keys of metadata.yaml that came after 2012. A `series`
// that is a single word is older than the list.
func modernKeys(keys map[string]yaml.Node) bool {
	for _, key := range []string{"assumes", "min-juju-version", "resources", "storage", "containers", "extra-bindings", "devices", "terms"} {
		if _, ok := keys[key]; ok {
			return true
		}
	}
	series := keys["series"]
	if series.Kind == yaml.AliasNode {
		series = *series.Alias
	}
	return series.Kind == yaml.SequenceNode
}

// modernFiles looks for files that came after 2012.
func (c *Charm) modernFiles() bool {
	for _, name := range []string{"dispatch", "charmcraft.yaml", "manifest.yaml"} {
		if c.has(name) {
			return true
		}
	}
	for name, mode := range c.files {
		packed := strings.HasPrefix(path.Base(name), "charmhelpers-") // in a wheelhouse
		if packed || inCharmhelpers(name) || path.Base(name) == "charmhelpers" && !mode.IsRegular() {
			return true
		}
	}
	return false
}

// inCharmhelpers says if the file lies in a folder called charmhelpers.
func inCharmhelpers(name string) bool {
	return strings.Contains("/"+path.Dir(name)+"/", "/charmhelpers/")
}
