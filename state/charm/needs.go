package charm

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gopkg.in/yaml.v3"
)

// Unsupported returns features that the charm asks for and this version of bijou lacks: required ones, and
// those that the charm can do without. jujuVersion is the version that the charm's hooks see.
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

// JujuVersion is the version of Juju that bijou behaves like towards charms on machines: nothing that its release
// notes promise to them is missing. docs/reference/charms.md says what was looked at. It has no suffix: the pattern with
// which the ops library parses it, in all its versions, allows none, and a charm that cannot parse it fails in its
// first line.
const JujuVersion = "3.6.27"

// Assumption is an entry of a charm's `assumes`: a feature of Juju, or several.
type Assumption struct {
	Text  string       `json:"text,omitempty" yaml:"-"` // "juju >= 3.1", "k8s-api"; empty: one of the lists
	AnyOf []Assumption `json:"any-of,omitempty" yaml:"any-of"`
	AllOf []Assumption `json:"all-of,omitempty" yaml:"all-of"`
}

var assumptionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z][a-z0-9-]*)(?:\s*(>=|<)\s*(\d{1,9}(?:\.\d{1,9}){0,3})(?:-\S+)?)?$`)
})

// UnmarshalYAML reads a feature, with a bound of its version or without, or a dictionary of one list.
func (a *Assumption) UnmarshalYAML(n *yaml.Node) error {
	type lists Assumption
	if n.Kind == yaml.ScalarNode {
		a.Text = n.Value
	} else if err := n.Decode((*lists)(a)); err != nil {
		return err
	}
	if assumptionPattern().MatchString(a.Text) || (len(a.AnyOf) > 0) != (len(a.AllOf) > 0) {
		return nil
	}

	return fmt.Errorf(
		"line %d: assumes has %q: want FEATURE, FEATURE >= VERSION, FEATURE < VERSION, any-of or all-of with some",
		n.Line, n.Value,
	)
}

// unmet lists the parts of an assumption that do not hold. Of Juju's features a machine has only the
// version.
func (a Assumption) unmet(jujuVersion string) (texts []string) {
	for _, one := range a.AllOf {
		texts = append(texts, one.unmet(jujuVersion)...)
	}
	isMet := func(one Assumption) bool { return len(one.unmet(jujuVersion)) == 0 }
	if len(a.AnyOf) > 0 && !slices.ContainsFunc(a.AnyOf, isMet) ||
		a.Text != "" && !isFeatureMet(a.Text, jujuVersion) {
		texts = append(texts, a.String())
	}

	return texts
}

// isFeatureMet reports whether bijou, as that version of Juju, has the feature that a text of assumes names:
// "juju", "juju >= 3.1" or "juju < 4". It has no other feature, such as k8s-api.
func isFeatureMet(text, jujuVersion string) bool {
	parts := assumptionPattern().FindStringSubmatch(text)
	if len(parts) == 0 {
		return false
	}

	feature, operator, version := parts[1], parts[2], parts[3]
	if feature != "juju" {
		return false
	}
	if operator == "" {
		return true
	}

	isOlder := slices.Compare(versionNumbers(jujuVersion), versionNumbers(version)) < 0
	return isOlder == (operator == "<")
}

// String returns the assumption in one line.
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

// versionNumbers returns the numbers of a version, filled up with zeros.
func versionNumbers(version string) []int {
	numbers := make([]int, 4)
	for i, part := range strings.SplitN(version, ".", len(numbers)) {
		numbers[i], _ = strconv.Atoi(part) // callers have checked it
	}
	return numbers
}

// Storage is a storage that a charm asks for in its metadata.
type Storage struct {
	Type     string `json:"type,omitempty"` // "filesystem", the default, or "block"
	Shared   bool   `json:"shared,omitempty"`
	ReadOnly bool   `json:"read-only,omitempty"`
	Location string `json:"location,omitempty"` // where it is to be found, absolute; empty: anywhere
	Multiple bool   `json:"multiple,omitempty"` // a unit may have several, below Location
	Minimum  int    `json:"minimum"`            // how many a unit must have; 0: it is optional
	Maximum  int    `json:"maximum,omitempty"`  // how many it can have; 0: any number
	Size     int64  `json:"size,omitempty"`     // MiB that each has at least; 0: any size
}

// UnmarshalYAML reads a storage of metadata.yaml. The key `multiple: {range: ...}` holds "0-", "1-3", "2"
// or "2+". Without it a unit has one such storage.
func (s *Storage) UnmarshalYAML(n *yaml.Node) error {
	raw := struct {
		Type     string
		Shared   boolYAML
		ReadOnly boolYAML `yaml:"read-only"`
		Location string
		Size     string `yaml:"minimum-size"`
		Multiple *struct{ Range string }
	}{Type: "filesystem"}

	if err := n.Decode(&raw); err != nil {
		return err
	}

	*s = Storage{
		Type:     raw.Type,
		Shared:   bool(raw.Shared),
		ReadOnly: bool(raw.ReadOnly),
		Multiple: raw.Multiple != nil && raw.Multiple.Range != "",
		Minimum:  1,
		Maximum:  1,
	}

	if raw.Location != "" {
		s.Location = path.Clean(raw.Location)
		if !path.IsAbs(s.Location) || s.Location == "/" {
			return fmt.Errorf("line %d: storage has the location %q: want an absolute path below /",
				n.Line, raw.Location)
		}
	}

	if raw.Size != "" {
		var err error
		if s.Size, err = parseSize(raw.Size); err != nil {
			return fmt.Errorf("line %d: storage has the minimum-size %q: want one like 10G", n.Line, raw.Size)
		}
	}
	if !s.Multiple {
		return nil
	}

	var ok bool
	s.Minimum, s.Maximum, ok = parseStorageRange(raw.Multiple.Range)
	if !ok {
		return fmt.Errorf("storage has the range %q: want one like 0-, 1-3 or 2", raw.Multiple.Range)
	}

	return nil
}

// parseStorageRange parses how many storages of a name a unit has at least and at most. The maximum 0 means
// any number.
func parseStorageRange(text string) (minimum, maximum int, ok bool) {
	first, last, isRange := strings.Cut(strings.TrimSuffix(text, "+"), "-")
	minimum, err := strconv.Atoi(first)
	if err != nil || minimum < 0 {
		return minimum, 0, false
	}

	switch {
	case isRange && last != "":
		maximum, err = strconv.Atoi(last)
		return minimum, maximum, err == nil && (maximum == 0 || maximum >= minimum)
	case isRange, strings.HasSuffix(text, "+"):
		return minimum, 0, true
	}

	return minimum, minimum, true
}

// unsupported returns why there can be no such storage; empty: there can.
func (s Storage) unsupported() string {
	switch {
	case s.Type != "filesystem" && s.Type != "": // charms that older binaries have stored say nothing of a type
		return "of type " + s.Type
	case s.Shared:
		return "shared by all units"
	case s.ReadOnly && s.Location == "":
		return "read-only without a location"
	}

	return ""
}

func (m *Meta) checkStorage() error {
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		if err := checkName("storage", name, storageName().MatchString, `lower-case letters, digits and dashes, a letter first`); err != nil {
			return err
		}
	}
	return nil
}

// LocationOf returns the location of the storage with that id; empty if any will do.
func (s Storage) LocationOf(id string) string {
	if s.Location != "" && s.Multiple && s.Maximum != 1 {
		return path.Join(s.Location, id)
	}
	return s.Location
}

// CheckCount returns why a unit cannot have that many.
func (s Storage) CheckCount(name string, n int) error {
	switch {
	case s.unsupported() != "":
		return fmt.Errorf("storage %q is %s, which this version of bijou does not have", name, s.unsupported())
	case s.Maximum > 0 && n > s.Maximum:
		return fmt.Errorf("a unit can have %d of storage %q at most, and would have %d", s.Maximum, name, n)
	}

	return nil
}

// Directive says what storage an operator wants.
type Directive struct {
	Pool  string `json:"pool,omitempty"`  // empty: rootfs
	Size  int64  `json:"size,omitempty"`  // MiB; 0: what the charm wants at least
	Count int    `json:"count,omitempty"` // 0: as many as the charm wants at least, or one
}

// The pools. PoolHost is followed by a colon and a folder of the machine.
const (
	PoolRootFS = "rootfs"
	PoolTmpFS  = "tmpfs"
	PoolHost   = "host"
)

// maxDirectiveCount bounds how many storages of one name an operator gives a unit at once.
const maxDirectiveCount = 50

var countPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{1,9}$`)
})

// ParseDirective parses "NAME" or "NAME=[POOL,][SIZE][,COUNT]", with the parts in any order.
func ParseDirective(text string) (name string, d Directive, err error) {
	name, rest, given := strings.Cut(text, "=")
	if !storageName().MatchString(name) {
		return "", d, Invalidf("invalid storage name %q", name)
	}
	if !given {
		return name, d, nil
	}

	for word := range strings.SplitSeq(rest, ",") {
		size, sizeErr := parseSize(word)

		switch kind, folder, _ := strings.Cut(word, ":"); {
		case countPattern().MatchString(word) && d.Count == 0 && word != "0":
			d.Count, _ = strconv.Atoi(word)
		case sizeErr == nil && size > 0 && d.Size == 0:
			d.Size = size
		case d.Pool != "":
			return "", d, Invalidf("storage %q: %q is neither a size (10G) nor a count, and the pool is given already", name, word)
		case word == PoolRootFS, word == PoolTmpFS, kind == PoolHost && path.IsAbs(folder) &&
			path.Clean(folder) == folder:
			d.Pool = word
		default:
			return "", d, Invalidf(
				"storage %q: %q is neither a pool, a size nor a count: want rootfs, tmpfs or host:/FOLDER, a size like 10G, a count from 1 on",
				name,
				word,
			)
		}
	}

	if d.Count > maxDirectiveCount {
		return "", d, Invalidf("storage %q: %d at once are too many, at most %d", name, d.Count,
			maxDirectiveCount)
	}

	return name, d, nil
}

// String writes a directive as ParseDirective reads it, without the name.
func (d Directive) String() string {
	words := []string{}
	if d.Pool != "" {
		words = append(words, d.Pool)
	}

	if d.Size > 0 {
		words = append(words, strconv.FormatInt(d.Size, 10)+"M")
	}
	if d.Count > 0 {
		words = append(words, strconv.Itoa(d.Count))
	}
	return strings.Join(words, ",")
}

var (
	storageName = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]*[a-z][a-z0-9]*)*$`)
	})
	sizePattern = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9]{1,9}(?:\.[0-9]{1,3})?)([MGTP])(?:i?B)?$`)
	})
)

// parseSize returns a size in MiB: "512M", "1.5G", "2TiB".
func parseSize(text string) (int64, error) {
	parts := sizePattern().FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	return int64(n * float64(int64(1)<<(10*strings.Index("MGTP", parts[2])))), err
}
