package charm

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bijou/state/lazyregexp"

	"gopkg.in/yaml.v3"
)

// JujuVersion is the version of Juju that bijou behaves like. It has no suffix: the pattern with
// which the ops library parses it, in all its versions, allows none, and a charm that cannot parse
// it fails in its first line.
const JujuVersion = "3.6.0"

// Assumption is an entry of a charm's `assumes`: what it needs of Juju.
type Assumption struct {
	Text  string       `json:"text,omitempty"` // "juju >= 3.1", "k8s-api"; empty: one of the lists
	AnyOf []Assumption `json:"any-of,omitempty"`
	AllOf []Assumption `json:"all-of,omitempty"`
}

var assumptionPattern = lazyregexp.New(`^([a-z][a-z0-9-]*)(?:\s*(>=|<)\s*(\d{1,9}(?:\.\d{1,9}){0,3})(?:-\S+)?)?$`)

// UnmarshalYAML reads a feature, with a bound of its version or without, or a dictionary of lists.
func (a *Assumption) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		if a.Text = n.Value; assumptionPattern.MatchString(n.Value) {
			return nil
		}
	} else {
		var raw struct {
			AnyOf []Assumption `yaml:"any-of"`
			AllOf []Assumption `yaml:"all-of"`
		}
		if err := n.Decode(&raw); err != nil {
			return err
		}
		if a.AnyOf, a.AllOf = raw.AnyOf, raw.AllOf; (len(a.AnyOf) > 0) != (len(a.AllOf) > 0) {
			return nil
		}
	}
	return fmt.Errorf("line %d: assumes has %q: want FEATURE, FEATURE >= VERSION, FEATURE < VERSION, any-of or all-of with some", n.Line, n.Value)
}

func (a Assumption) isMet(jujuVersion string) bool { return len(a.unmet(jujuVersion)) == 0 }

// unmet lists what is not met, of lists what of them. Of Juju's features machines have none but
// its version.
func (a Assumption) unmet(jujuVersion string) (texts []string) {
	switch {
	case len(a.AnyOf) > 0 && slices.ContainsFunc(a.AnyOf, func(one Assumption) bool { return one.isMet(jujuVersion) }):
		return nil
	case len(a.AnyOf) > 0:
		return []string{a.String()}
	case a.Text == "":
		for _, one := range a.AllOf {
			texts = append(texts, one.unmet(jujuVersion)...)
		}
		return texts
	}
	parts := assumptionPattern.Compiled().FindStringSubmatch(a.Text)
	if len(parts) > 0 && parts[1] == "juju" && (parts[2] == "" || isOlder(jujuVersion, parts[3]) == (parts[2] == "<")) {
		return nil
	}
	return []string{a.Text}
}

// String writes it in one line.
func (a Assumption) String() string {
	list, word := a.AnyOf, " or "
	if len(a.AllOf) > 0 {
		list, word = a.AllOf, " and "
	}
	if len(list) == 0 {
		return a.Text
	}
	var texts []string
	for _, one := range list {
		texts = append(texts, one.String())
	}
	return "(" + strings.Join(texts, word) + ")"
}

func isOlder(a, b string) bool { return slices.Compare(versionNumbers(a), versionNumbers(b)) < 0 }

func versionNumbers(version string) []int {
	numbers := make([]int, 4)
	for i, part := range strings.SplitN(version, ".", len(numbers)) {
		numbers[i], _ = strconv.Atoi(part) // callers have checked it
	}
	return numbers
}
