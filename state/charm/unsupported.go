package charm

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"

	"bijou/state/lazyregexp"
)

// Unsupported returns what a charm asks for and this version of bijou does not have: what the
// charm requires, and what it can do without. jujuVersion is what its hooks are promised.
func Unsupported(m *Meta, jujuVersion string) (required, optional []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		why := m.Storage[name].unsupported()
		if why != "" && m.Storage[name].Minimum > 0 {
			required = append(required, fmt.Sprintf("storage %q (%s)", name, why))
		} else if why != "" {
			optional = append(optional, fmt.Sprintf("storage %q (%s)", name, why))
		}
	}
	return append(required, Assumption{AllOf: m.Assumes}.unmet(jujuVersion)...), optional
}

// JujuVersion is the version of Juju that bijou behaves like. It has no suffix: the pattern with
// which the ops library parses it, in all its versions, allows none, and a charm that cannot parse
// it fails in its first line.
const JujuVersion = "3.6.0"

// Assumption is an entry of a charm's `assumes`: a feature of Juju, or several.
type Assumption struct {
	Text  string       `json:"text,omitempty" yaml:"-"` // "juju >= 3.1", "k8s-api"; empty: one of the lists
	AnyOf []Assumption `json:"any-of,omitempty" yaml:"any-of"`
	AllOf []Assumption `json:"all-of,omitempty" yaml:"all-of"`
}

var assumptionPattern = lazyregexp.New(`^([a-z][a-z0-9-]*)(?:\s*(>=|<)\s*(\d{1,9}(?:\.\d{1,9}){0,3})(?:-\S+)?)?$`)

// UnmarshalYAML reads a feature, with a bound of its version or without, or a dictionary of one list.
func (a *Assumption) UnmarshalYAML(n *yaml.Node) error {
	type lists Assumption
	if n.Kind == yaml.ScalarNode {
		a.Text = n.Value
	} else if err := n.Decode((*lists)(a)); err != nil {
		return err
	}
	if assumptionPattern.MatchString(a.Text) || (len(a.AnyOf) > 0) != (len(a.AllOf) > 0) {
		return nil
	}
	return fmt.Errorf("line %d: assumes has %q: want FEATURE, FEATURE >= VERSION, FEATURE < VERSION, any-of or all-of with some", n.Line, n.Value)
}

// unmet lists what is not met, of lists what of them. Of Juju's features machines have none but
// its version.
func (a Assumption) unmet(jujuVersion string) (texts []string) {
	for _, one := range a.AllOf {
		texts = append(texts, one.unmet(jujuVersion)...)
	}
	isMet := func(one Assumption) bool { return len(one.unmet(jujuVersion)) == 0 }
	if len(a.AnyOf) > 0 && !slices.ContainsFunc(a.AnyOf, isMet) || a.Text != "" && !isFeatureMet(a.Text, jujuVersion) {
		texts = append(texts, a.String())
	}
	return texts
}

func isFeatureMet(text, jujuVersion string) bool {
	parts := assumptionPattern.Compiled().FindStringSubmatch(text)
	if len(parts) == 0 || parts[1] != "juju" {
		return false
	}
	isOlder := slices.Compare(versionNumbers(jujuVersion), versionNumbers(parts[3])) < 0
	return parts[2] == "" || isOlder == (parts[2] == "<")
}

// String writes it in one line.
func (a Assumption) String() string {
	var texts []string
	for _, one := range append(a.AnyOf, a.AllOf...) {
		texts = append(texts, one.String())
	}
	switch {
	case len(a.AnyOf) > 0:
		return "(" + strings.Join(texts, " or ") + ")"
	case len(a.AllOf) > 0:
		return "(" + strings.Join(texts, " and ") + ")"
	}
	return a.Text
}

func versionNumbers(version string) []int {
	numbers := make([]int, 4)
	for i, part := range strings.SplitN(version, ".", len(numbers)) {
		numbers[i], _ = strconv.Atoi(part) // callers have checked it
	}
	return numbers
}
