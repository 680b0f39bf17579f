package charm

import (
	"fmt"
	"strings"

	"gopkg.in/yaml.v3"
)

// Role is the role of an endpoint in a relation.
type Role string

// The roles. The role that tools call "consumes" is "requires" in charms.
const (
	Provides Role = "provides"
	Consumes Role = "consumes"
	Peers    Role = "peers"
)

// Scope determines which units a relation connects.
type Scope string

// The scopes. Global connects all units of both services. Container connects only units on one machine: a
// subordinate and its principal.
const (
	Global    Scope = "global"
	Container Scope = "container"
)

// JujuInfo is the name of the relation that every service provides without declaring it, and of the
// relation's interface.
const JujuInfo = "juju-info"

// Relation is an endpoint of a relation, as a charm declares it.
type Relation struct {
	Name      string `json:"name"`
	Role      Role   `json:"role"`
	Interface string `json:"interface"`
	Scope     Scope  `json:"scope"`
	Optional  bool   `json:"optional,omitempty"`
	Limit     int    `json:"limit,omitempty"` // 0 for no limit
}

// ImpliedRelation returns the relation that every service provides.
func ImpliedRelation() Relation {
	return Relation{Name: JujuInfo, Role: Provides, Interface: JujuInfo, Scope: Global}
}

// relationYAML is a relation in metadata.yaml: `db: mysql`, or `db:` with a mapping of these keys.
type relationYAML struct {
	Interface string
	Scope     string
	Optional  boolYAML
	Limit     intYAML
}

// UnmarshalYAML reads a relation in either form: an interface's name, or a mapping. It ignores unknown keys of
// the mapping, and also <<, which merges other mappings.
func (r *relationYAML) UnmarshalYAML(n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		r.Interface = n.Value
		return nil
	case yaml.MappingNode:
		// n.Decode would merge mappings behind aliases. yaml.v3 limits the use of aliases, but each call of
		// Decode counts it from zero. A file with many relations could therefore exceed the limit.
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := r.setField(n.Content[i].Value, n.Content[i+1]); err != nil {
				return err
			}
		}
		return nil
	}

	return fmt.Errorf("line %d: a relation must be the name of an interface, or a mapping with the key \"interface\"", n.Line)
}

// setField decodes the value into the field that the key of a mapping names. It ignores unknown keys.
func (r *relationYAML) setField(key string, value *yaml.Node) error {
	switch key {
	case "interface":
		return value.Decode(&r.Interface)
	case "scope":
		return value.Decode(&r.Scope)
	case "optional":
		return value.Decode(&r.Optional)
	case "limit":
		return value.Decode(&r.Limit)
	}

	return nil
}

// toRelation checks a relation of metadata.yaml, and returns it. A relation without a scope is global.
func (r relationYAML) toRelation(name string, role Role) (Relation, error) {
	rel := Relation{
		Name:      name,
		Role:      role,
		Interface: r.Interface,
		Scope:     Scope(r.Scope),
		Optional:  bool(r.Optional),
		Limit:     int(r.Limit),
	}

	if err := CheckRelation(name); err != nil {
		return Relation{}, err
	}
	if err := CheckInterface(rel.Interface); err != nil {
		return Relation{}, fmt.Errorf("relation %q: %w", name, err)
	}
	if rel.Limit < 0 {
		return Relation{}, fmt.Errorf("relation %q: limit %d is below 0", name, rel.Limit)
	}

	switch rel.Scope {
	case "":
		rel.Scope = Global
	case Global, Container:
		// The scope is valid.
	default:
		return Relation{}, fmt.Errorf("relation %q: scope is %q: want global or container", name, r.Scope)
	}

	return rel, nil
}

// checkReserved returns an error for a relation whose name is reserved: "juju", or a name that begins with
// "juju-". Such names are for relations that every service provides. A subordinate can use them to require its
// principal's relation. Interfaces with such names are also reserved: a charm can only require them. Charms whose
// own names begin with "juju-" belong to Juju. Of their relations, checkReserved checks only juju-info.
func (r Relation) checkReserved(m *Meta) error {
	if strings.HasPrefix(m.Name, "juju-") && r.Name != JujuInfo {
		return nil
	}

	ofPrincipal := m.Subordinate && r.Role == Consumes && r.Scope == Container
	if isReserved(r.Name) && !ofPrincipal {
		return fmt.Errorf("relation %q: the names juju and juju-* are reserved", r.Name)
	}
	if isReserved(r.Interface) && r.Role != Consumes {
		return fmt.Errorf("relation %q: interface %q is reserved: a charm can only require it", r.Name, r.Interface)
	}

	return nil
}

// isReserved reports whether the name of a relation or an interface is "juju" or begins with "juju-".
func isReserved(name string) bool { return name == "juju" || strings.HasPrefix(name, "juju-") }
