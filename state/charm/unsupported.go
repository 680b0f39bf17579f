package charm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Storage is a storage that a charm asks for in its metadata.
type Storage struct {
	Minimum int `json:"minimum"` // how many a unit must have; 0: it is optional
}

// UnmarshalYAML reads `multiple: {range: ...}`: "0-", "1-3", "2" or "2+"; the default is one.
func (s *Storage) UnmarshalYAML(n *yaml.Node) error {
	var raw struct {
		Multiple struct {
			Range string `yaml:"range"`
		} `yaml:"multiple"`
	}
	if err := n.Decode(&raw); err != nil {
		return err
	}
	s.Minimum = 1
	if raw.Multiple.Range == "" {
		return nil
	}
	first, _, _ := strings.Cut(strings.TrimSuffix(raw.Multiple.Range, "+"), "-")
	var err error
	if s.Minimum, err = strconv.Atoi(first); err != nil || s.Minimum < 0 {
		return fmt.Errorf("storage has the range %q: want one like 0-, 1-3 or 2", raw.Multiple.Range)
	}
	return nil
}

// Unsupported returns what a charm asks for and this version of bijou does not have: what the
// charm requires, and what it can do without. jujuVersion is what its hooks are promised.
func Unsupported(m *Meta, jujuVersion string) (required, optional []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		text := fmt.Sprintf("storage %q", name)
		if m.Storage[name].Minimum > 0 {
			required = append(required, text)
		} else {
			optional = append(optional, text)
		}
	}
	return append(required, Assumption{AllOf: m.Assumes}.unmet(jujuVersion)...), optional
}
