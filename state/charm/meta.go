package charm

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Meta is the metadata of a charm, from metadata.yaml or charmcraft.yaml, which have the same keys. Other
// keys are ignored.
type Meta struct {
	Name          string              `json:"name" yaml:"name"`
	Summary       string              `json:"summary,omitempty" yaml:"summary"`
	Description   string              `json:"description,omitempty" yaml:"description"`
	Subordinate   bool                `json:"subordinate,omitempty" yaml:"-"`
	Series        []string            `json:"series,omitempty" yaml:"-"`       // in order of preference; empty for any
	HookDialect   Dialect             `json:"hook-dialect,omitempty" yaml:"-"` // usually empty
	Resources     map[string]Resource `json:"resources,omitempty" yaml:"resources"`
	ExtraBindings []string            `json:"extra-bindings,omitempty" yaml:"-"`
	Storage       map[string]Storage  `json:"storage,omitempty" yaml:"storage"`
	Assumes       Assumptions         `json:"assumes,omitempty" yaml:"assumes"`
	Archs         map[string][]string `json:"archs,omitempty" yaml:"-"` // by series; empty for any architecture

	// Declared are the relations of the charm by name, without the implied one.
	Declared map[string]Relation `json:"relations,omitempty" yaml:"-"`

	revision *int   // the key revision, for charms without a revision file; nil if absent
	modern   string // a key that was introduced after 2012; empty without such a key
}

// metaYAML has the keys that have a different form in Meta, or that are not part of Meta.
type metaYAML struct {
	Meta           `yaml:",inline"`
	Subordinate    boolYAML                `yaml:"subordinate"`
	Series         Strings                 `yaml:"series"`
	Revision       *int                    `yaml:"revision"`
	HookDialect    string                  `yaml:"hook-dialect"`
	MinJujuVersion string                  `yaml:"min-juju-version"`
	Provides       map[string]relationYAML `yaml:"provides"`
	Requires       map[string]relationYAML `yaml:"requires"`
	Peers          map[string]relationYAML `yaml:"peers"`
	ExtraBindings  map[string]yaml.Node    `yaml:"extra-bindings"`
	Containers     map[string]yaml.Node    `yaml:"containers"`
	Extensions     []string                `yaml:"extensions"`
	Base           string                  `yaml:"base"`
	Bases          []baseYAML              `yaml:"bases"`
	Platforms      map[string]struct {
		BuildFor Strings `yaml:"build-for"`
	} `yaml:"platforms"`
}

// merge adds the values of a file with metadata. Values from an earlier file stay if this file does not have
// them.
func (raw *metaYAML) merge(data []byte) error {
	if err := unmarshalCharm(data, raw); err != nil {
		return err
	}

	var keys map[string]yaml.Node
	if err := unmarshalCharm(data, &keys); err != nil {
		return err
	}

	// One modern key is enough to recognize a newer charm, so the first one stays.
	raw.modern = cmp.Or(raw.modern, modernKey(keys))
	return nil
}

// toMeta checks the merged metadata, and returns it as a Meta.
func (raw *metaYAML) toMeta() (*Meta, error) {
	m := &raw.Meta
	m.Subordinate = bool(raw.Subordinate)
	m.Series = raw.Series
	m.revision = raw.Revision
	m.ExtraBindings = slices.Sorted(maps.Keys(raw.ExtraBindings))
	if raw.MinJujuVersion != "" {
		m.Assumes = append(m.Assumes, Assumption{Text: "juju >= " + raw.MinJujuVersion})
	}

	m.setPlatforms(raw)
	if err := m.checkKubernetes(raw); err != nil {
		return nil, err
	}
	if err := m.checkFields(); err != nil {
		return nil, err
	}
	if raw.HookDialect != "" {
		dialect, err := ParseDialect(raw.HookDialect)
		if err != nil {
			return nil, fmt.Errorf("hook-dialect: %w", err)
		}
		m.HookDialect = dialect
	}

	if err := m.addRelations(raw); err != nil {
		return nil, err
	}

	return m, nil
}

// checkKubernetes returns an error if the metadata shows that the charm is for Kubernetes. All extensions of
// charmcraft are for Kubernetes.
func (m *Meta) checkKubernetes(raw *metaYAML) error {
	var signs []string
	for _, text := range (Assumption{AllOf: m.Assumes}).unmet(JujuVersion) {
		if strings.HasPrefix(text, "k8s-api") {
			signs = append(signs, "assumes "+text)
		}
	}

	if len(raw.Containers) > 0 {
		signs = append(signs, "containers")
	}
	signs = append(signs, raw.Extensions...)
	if slices.Equal(raw.Series, Strings{"kubernetes"}) {
		signs = append(signs, "series kubernetes")
	}
	if len(signs) == 0 {
		return nil
	}

	return fmt.Errorf("the charm is for Kubernetes (%s): bijou runs charms on machines",
		strings.Join(signs, ", "))
}

// checkFields checks the name, the series, the resources, the names of storages and the key revision.
func (m *Meta) checkFields() error {
	if m.Name == "" {
		return errors.New("the charm has no name")
	}
	if err := CheckName(m.Name); err != nil {
		return err
	}

	for _, s := range m.Series {
		if err := CheckSeries(s); err != nil {
			return err
		}
	}

	if err := cmp.Or(m.checkResources(), m.checkStorage()); err != nil {
		return err
	}
	if m.revision != nil {
		return checkRevision(*m.revision)
	}

	return nil
}

// addRelations checks the declared relations and adds them to m.Declared, by role and then by name, so that a
// charm with several errors always gets the same error. It also returns the error of checkSubordinate.
func (m *Meta) addRelations(raw *metaYAML) error {
	m.Declared = make(map[string]Relation)

	for _, part := range []struct {
		role  Role
		items map[string]relationYAML
	}{{Provides, raw.Provides}, {Consumes, raw.Requires}, {Peers, raw.Peers}} {
		for _, name := range slices.Sorted(maps.Keys(part.items)) {
			rel, err := part.items[name].toRelation(name, part.role)
			if err != nil {
				return err
			}
			if err := rel.checkReserved(m); err != nil {
				return err
			}
			if _, isDeclared := m.Declared[name]; isDeclared {
				return fmt.Errorf("relation %q is declared twice", name)
			}
			m.Declared[name] = rel
		}
	}

	return m.checkSubordinate()
}

// checkSubordinate returns an error for a subordinate charm that does not require a relation of container scope.
func (m *Meta) checkSubordinate() error {
	if !m.Subordinate {
		return nil
	}

	for _, rel := range m.Declared {
		if rel.Role == Consumes && rel.Scope == Container {
			return nil
		}
	}

	return fmt.Errorf("subordinate charm %q must require a relation with scope container", m.Name)
}

// Relation returns the relation with this name. The relation can be the implied juju-info.
func (m *Meta) Relation(name string) (Relation, bool) {
	if rel, ok := m.Declared[name]; ok {
		return rel, true
	}
	if name == JujuInfo {
		return ImpliedRelation(), true
	}

	return Relation{}, false
}

// Relations returns all relations sorted by name, including the implied juju-info. A declared relation named
// juju-info, which a subordinate can have, replaces the implied one.
func (m *Meta) Relations() []Relation {
	all := map[string]Relation{JujuInfo: ImpliedRelation()}
	maps.Copy(all, m.Declared)
	return slices.SortedFunc(maps.Values(all), func(a, b Relation) int { return cmp.Compare(a.Name, b.Name) })
}

// Supports reports whether the charm runs on this series. A charm without series runs on all.
func (m *Meta) Supports(series string) bool {
	return len(m.Series) == 0 || slices.Contains(m.Series, series)
}

// Strings is a list that may be written as a single text.
type Strings []string

// UnmarshalYAML accepts a text or a list of texts.
func (s *Strings) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*s = Strings{n.Value}
		return nil
	}
	return n.Decode((*[]string)(s))
}

// Resource is a file that the operator provides for the charm.
type Resource struct {
	Type        string `json:"type" yaml:"type"` // "file" or empty; resources of other types cannot be provided
	Filename    string `json:"filename,omitempty" yaml:"filename"`
	Description string `json:"description,omitempty" yaml:"description"`
}

// resourceName is strict since a resource's name is also the name of a directory.
var resourceName = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[a-zA-Z0-9]([a-zA-Z0-9._-]*[a-zA-Z0-9])?$`)
})

// ResourceFile returns the name of a resource's file on the units. It returns an error if the charm does not
// have the resource, or if the resource is not a file.
func (m *Meta) ResourceFile(name string) (string, error) {
	r, ok := m.Resources[name]
	switch {
	case !ok && len(m.Resources) == 0:
		return "", fmt.Errorf("the charm has no resource %q: it has no resources", name)
	case !ok:
		return "", fmt.Errorf("the charm has no resource %q: it has %s",
			name, strings.Join(slices.Sorted(maps.Keys(m.Resources)), ", "))
	case r.Type != "" && r.Type != "file":
		return "", fmt.Errorf("resource %q is of type %q: only files can be attached", name, r.Type)
	case r.Filename == "":
		return name, nil
	}

	return path.Base(r.Filename), nil
}

// CheckResource returns an error unless name is valid for a resource.
func CheckResource(name string) error {
	return checkName("resource", name, resourceName().MatchString, `letters, digits, dots, dashes and underscores`)
}

// checkResources checks the names of resources and of their files.
func (m *Meta) checkResources() error {
	for _, name := range slices.Sorted(maps.Keys(m.Resources)) {
		if err := CheckResource(name); err != nil {
			return err
		}

		file := m.Resources[name].Filename
		if file != "" && !isResourceFile(file) {
			return fmt.Errorf("resource %q: invalid file name %.60q", name, file)
		}
	}

	return nil
}

// isResourceFile reports whether the text can be the file name of a resource. Units use only its last part.
func isResourceFile(file string) bool {
	if len(file) > 2*maxName || strings.ContainsRune(file, 0) {
		return false
	}

	base := path.Base(file)
	return base != "." && base != ".." && base != "/"
}
