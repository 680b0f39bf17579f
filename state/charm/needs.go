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

// Unsupported returns the features in the charm's metadata that this version of bijou does not have. It
// separates required features from features that the charm can do without. jujuVersion is the version that
// the charm's hooks see.
func Unsupported(m *Meta, jujuVersion string) (required, optional []string) {
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		why := m.Storage[name].unsupported()
		if why != "" && m.Storage[name].Minimum > 0 {
			required = append(required, fmt.Sprintf("storage %q (%s)", name, why))
		} else if why != "" {
			optional = append(optional, fmt.Sprintf("storage %q (%s)", name, why))
		}
	}

	// A charm requires all that it assumes.
	return append(required, Assumption{AllOf: m.Assumes}.unmet(jujuVersion)...), optional
}

// JujuVersion is the version of Juju that charms on machines see. bijou has all features that the release
// notes up to this version promise to such charms; docs/reference/charms.md lists them. The version must not
// have a suffix: no version of the ops library can parse a suffix, and charms would fail immediately.
const JujuVersion = "3.6.27"

// Assumption is an entry of a charm's `assumes`: a feature of Juju, or a list of assumptions.
type Assumption struct {
	Text  string       `json:"text,omitempty" yaml:"-"` // such as "juju >= 3.1" or "k8s-api"; empty for a list
	AnyOf []Assumption `json:"any-of,omitempty" yaml:"any-of"`
	AllOf []Assumption `json:"all-of,omitempty" yaml:"all-of"`
}

var assumptionPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([a-z][a-z0-9-]*)(?:\s*(>=|<)\s*(\d{1,9}(?:\.\d{1,9}){0,3})(?:-\S+)?)?$`)
})

// Assumptions are the entries of `assumes`, all of which must hold.
type Assumptions []Assumption

// maxAssumptions limits the features and lists in `assumes`, with aliases resolved. A list can contain itself by an alias.
const maxAssumptions = 1000

// UnmarshalYAML reads the list. It does not use n.Decode for its entries, since the decoder's limits for aliases begin
// again with each call.
func (a *Assumptions) UnmarshalYAML(n *yaml.Node) error {
	list := resolveAlias(n)
	if list.Kind != yaml.SequenceNode {
		return fmt.Errorf("line %d: assumes must be a list", n.Line)
	}

	remaining := maxAssumptions
	entries, err := readAssumptions(list, &remaining)
	*a = entries
	return err
}

// readAssumptions reads the entries of a list. remaining is how many more features and lists there can be.
func readAssumptions(list *yaml.Node, remaining *int) ([]Assumption, error) {
	var entries []Assumption
	for _, n := range list.Content {
		if resolveAlias(n).ShortTag() == "!!null" {
			continue
		}
		var a Assumption
		if err := a.read(n, remaining); err != nil {
			return nil, err
		}
		entries = append(entries, a)
	}
	return entries, nil
}

// read reads a feature, with or without a version, or a dictionary with either any-of or all-of. remaining is that of
// readAssumptions.
func (a *Assumption) read(n *yaml.Node, remaining *int) error {
	if *remaining == 0 {
		return fmt.Errorf("line %d: assumes has more than %d features and lists", n.Line, maxAssumptions)
	}
	*remaining--

	value := resolveAlias(n)
	if value.Kind == yaml.ScalarNode {
		a.Text = value.Value
	}
	for i := 0; value.Kind == yaml.MappingNode && i+1 < len(value.Content); i += 2 {
		target := &a.AnyOf
		switch value.Content[i].Value {
		case "any-of":
		case "all-of":
			target = &a.AllOf
		default:
			continue
		}

		list := resolveAlias(value.Content[i+1])
		if list.Kind != yaml.SequenceNode {
			continue
		}
		entries, err := readAssumptions(list, remaining)
		if err != nil {
			return err
		}
		*target = entries
	}

	hasOneList := (len(a.AnyOf) > 0) != (len(a.AllOf) > 0)
	if hasOneList || assumptionPattern().MatchString(a.Text) {
		return nil
	}

	return fmt.Errorf(
		"line %d: assumes has an invalid entry %q: want FEATURE, FEATURE >= VERSION, FEATURE < VERSION, or a non-empty list any-of or all-of",
		n.Line, value.Value,
	)
}

// resolveAlias returns the node of which n is an alias, or n itself.
func resolveAlias(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// unmet returns the parts of an assumption that do not hold for jujuVersion, the version of Juju that the charm
// sees. The entries of an all-of are separate parts, and an any-of is one part.
func (a Assumption) unmet(jujuVersion string) (texts []string) {
	for _, part := range a.AllOf {
		texts = append(texts, part.unmet(jujuVersion)...)
	}

	isMet := func(part Assumption) bool { return len(part.unmet(jujuVersion)) == 0 }
	noneMet := len(a.AnyOf) > 0 && !slices.ContainsFunc(a.AnyOf, isMet)
	lacksFeature := a.Text != "" && !isFeatureMet(a.Text, jujuVersion)
	if noneMet || lacksFeature {
		texts = append(texts, a.String())
	}

	return texts
}

// isFeatureMet reports whether jujuVersion has the feature that a text of assumes names, such as "juju >= 3.1"
// or "juju < 4". The only feature is juju. bijou does not have other features, such as k8s-api.
func isFeatureMet(text, jujuVersion string) bool {
	parts := assumptionPattern().FindStringSubmatch(text)
	// The version in the key min-juju-version has not been checked, and can be invalid.
	if len(parts) == 0 {
		return false
	}

	feature := parts[1]
	operator := parts[2]
	version := parts[3]
	if feature != "juju" {
		return false
	}
	if operator == "" {
		return true
	}

	// The other operator is >=.
	isOlder := slices.Compare(versionNumbers(jujuVersion), versionNumbers(version)) < 0
	return isOlder == (operator == "<")
}

// String returns the assumption in one line.
func (a Assumption) String() string {
	var texts []string
	// At most one of the two lists has entries; see read.
	for _, part := range append(a.AnyOf, a.AllOf...) {
		texts = append(texts, part.String())
	}

	switch {
	case len(a.AnyOf) > 0:
		return "(" + strings.Join(texts, " or ") + ")"
	case len(a.AllOf) > 0:
		return "(" + strings.Join(texts, " and ") + ")"
	}

	return a.Text
}

// versionNumbers returns the four numbers of a version. Missing numbers are zero.
func versionNumbers(version string) []int {
	numbers := make([]int, 4)
	for i, part := range strings.SplitN(version, ".", len(numbers)) {
		// The callers have checked the version.
		numbers[i], _ = strconv.Atoi(part)
	}
	return numbers
}

// Storage is a storage that a charm requests in its metadata.
type Storage struct {
	Type     string `json:"type,omitempty"` // "filesystem", the default, or "block"
	Shared   bool   `json:"shared,omitempty"`
	ReadOnly bool   `json:"read-only,omitempty"`
	Location string `json:"location,omitempty"` // absolute path where the charm expects the storage; empty for any path
	Multiple bool   `json:"multiple,omitempty"` // whether a unit can have several storages, below Location
	Minimum  int    `json:"minimum"`            // how many storages a unit must have; 0 if none is required
	Maximum  int    `json:"maximum,omitempty"`  // how many storages a unit can have; 0 for any number
	Size     int64  `json:"size,omitempty"`     // minimum size in MiB; 0 for any size
}

// UnmarshalYAML reads a storage of metadata.yaml. The range in `multiple: {range: ...}` is a text such as "0-",
// "1-3", "2" or "2+". Without a range, a unit has exactly one such storage. Without the key type, the storage
// is a file system.
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

// parseStorageRange parses a range such as "1-3": the minimum and maximum number of storages of a unit. The
// maximum 0 means any number. ok is false if the range is invalid, and the numbers then have no meaning.
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

// unsupported returns the reason why bijou does not support this kind of storage, or "" if bijou supports it.
func (s Storage) unsupported() string {
	switch {
	case s.Type != "filesystem" && s.Type != "":
		// The type is empty if an older binary has stored the charm.
		return "of type " + s.Type
	case s.Shared:
		return "shared by all units"
	case s.ReadOnly && s.Location == "":
		return "read-only without a location"
	}

	return ""
}

// checkStorage returns an error if the name of a storage is invalid.
func (m *Meta) checkStorage() error {
	for _, name := range slices.Sorted(maps.Keys(m.Storage)) {
		const want = `lower-case letters, digits and dashes, a letter first`
		if err := checkName("storage", name, storageName().MatchString, want); err != nil {
			return err
		}
	}
	return nil
}

// LocationOf returns the location of the storage with this id, or "" for any location.
func (s Storage) LocationOf(id string) string {
	if s.Location != "" && s.Multiple && s.Maximum != 1 {
		return path.Join(s.Location, id)
	}
	return s.Location
}

// CheckCount returns an error if bijou does not support this kind of storage, or if n storages are more than a
// unit can have. It does not check the minimum. name is the storage's name, for the error.
func (s Storage) CheckCount(name string, n int) error {
	switch {
	case s.unsupported() != "":
		return fmt.Errorf("storage %q is %s, which this version of bijou does not support", name, s.unsupported())
	case s.Maximum > 0 && n > s.Maximum:
		return fmt.Errorf("a unit can have at most %d instances of storage %q, and would have %d", s.Maximum, name, n)
	}

	return nil
}

// Directive is an operator's request for storage.
type Directive struct {
	Pool  string `json:"pool,omitempty"`  // empty for rootfs
	Size  int64  `json:"size,omitempty"`  // in MiB; 0 for the charm's minimum size
	Count int    `json:"count,omitempty"` // 0 for the charm's minimum number, or one
}

// These are the pools. In a directive, PoolHost is followed by a colon and a directory on the machine.
const (
	PoolRootFS = "rootfs"
	PoolTmpFS  = "tmpfs"
	PoolHost   = "host"
)

// maxDirectiveCount is how many storages of one name an operator can request for a unit at once.
const maxDirectiveCount = 50

var countPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9]{1,9}$`)
})

// ParseDirective parses "NAME" or "NAME=[POOL,][SIZE][,COUNT]", with the parts in any order. It returns an error
// for an invalid name or part, for a second pool, size or count, and for a count above maxDirectiveCount.
func ParseDirective(text string) (name string, d Directive, err error) {
	name, rest, given := strings.Cut(text, "=")
	if !storageName().MatchString(name) {
		return "", d, Invalidf("invalid storage name %q", name)
	}
	if !given {
		return name, d, nil
	}

	for word := range strings.SplitSeq(rest, ",") {
		// isCount and isSize have checked the word, so the conversions below cannot fail.
		isRepeated := false
		switch {
		case isPool(word):
			isRepeated = d.Pool != ""
			d.Pool = word
		case isCount(word):
			isRepeated = d.Count != 0
			d.Count, _ = strconv.Atoi(word)
		case isSize(word):
			isRepeated = d.Size != 0
			d.Size, _ = parseSize(word)
		default:
			return "", d, Invalidf(
				"storage %q: %q is neither a pool, a size nor a count: want rootfs, tmpfs or host:/DIRECTORY, a size such as 10G, or a count from 1",
				name,
				word,
			)
		}

		if isRepeated {
			return "", d, Invalidf("storage %q: %q: give at most one pool, one size and one count", name, word)
		}
	}

	if d.Count > maxDirectiveCount {
		return "", d, Invalidf("storage %q: a count of %d is too high; the limit is %d", name, d.Count,
			maxDirectiveCount)
	}

	return name, d, nil
}

// isPool reports whether the word names a pool: rootfs, tmpfs, or host: followed by an absolute path in the form
// that path.Clean returns.
func isPool(word string) bool {
	if word == PoolRootFS || word == PoolTmpFS {
		return true
	}
	kind, dir, _ := strings.Cut(word, ":")
	return kind == PoolHost && path.IsAbs(dir) && path.Clean(dir) == dir
}

// isCount reports whether the word is a number from 1.
func isCount(word string) bool {
	return countPattern().MatchString(word) && strings.Trim(word, "0") != ""
}

// isSize reports whether the word is a size from 1 MiB.
func isSize(word string) bool {
	size, err := parseSize(word)
	return err == nil && size > 0
}

// String returns the directive in the form that ParseDirective reads, without the name.
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

// parseSize parses a size, such as "512M", "1.5G" or "2TiB". It returns whole MiB, rounded down.
func parseSize(text string) (int64, error) {
	parts := sizePattern().FindStringSubmatch(text)
	if parts == nil {
		return 0, fmt.Errorf("invalid size %q", text)
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	if err != nil {
		return 0, err
	}

	// The result is in MiB, so the scale of M is 1. Each other unit is 1024 times the one before it.
	scale := int64(1) << (10 * strings.Index("MGTP", parts[2]))
	return int64(n * float64(scale)), nil
}
