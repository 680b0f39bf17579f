// Package constraints has the constraints on a machine: how they are parsed, layered, and
// compared with what a machine has.
//
// It does no I/O and imports nothing of bijou. state stores its values, provision
// gives them to the providers, and multicall/juju reads them from operators.
package constraints

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Parse reads constraints as operators write them: NAME=VALUE, separated by
// spaces. An empty VALUE is explicitly none. Its errors need no prefix.
func Parse(text string) (Value, error) {
	var v Value
	for _, part := range strings.Fields(text) {
		if err := v.parsePair(part); err != nil {
			return Value{}, err
		}
	}

	if name := v.firstSize(); isWanted(v.InstanceType) && name != "" {
		return Value{}, fmt.Errorf("ambiguous constraints: %q overlaps with %q", "instance-type", name)
	}

	return v, nil
}

// unknownError is a name that no constraint has.
type unknownError string

// Error returns Juju's wording.
func (u unknownError) Error() string { return fmt.Sprintf("unknown constraint %q", string(u)) }

// Hint names the constraints that there are.
func (unknownError) Hint() string {
	var v Value
	var names []string
	for _, f := range v.allFields() {
		names = append(names, f.name)
	}
	return "constraints: " + strings.Join(names, ", ")
}

// parsePair parses a word NAME=VALUE. It refuses a name that is set already.
func (v *Value) parsePair(part string) error {
	name, text, ok := strings.Cut(part, "=")
	if !ok || name == "" {
		return fmt.Errorf("malformed constraint %q", part)
	}

	f, ok := v.findField(name)
	if !ok {
		return unknownError(name)
	}
	if _, twice := f.format(); twice {
		return fmt.Errorf("bad %q constraint: already set", name)
	}
	if err := f.set(text); err != nil {
		return fmt.Errorf("bad %q constraint: %w", name, err)
	}

	return nil
}

// firstSize returns the name of the first constraint that v asks for and an instance type
// decides, too; "" if there is none.
func (v *Value) firstSize() string {
	for _, size := range []struct {
		name  string
		asked *uint64
	}{{"mem", v.Mem}, {"cpu-cores", v.CPUCores}, {"cpu-power", v.CPUPower}, {"root-disk", v.RootDisk}} {
		if isWanted(size.asked) {
			return size.name
		}
	}

	return ""
}

// String prints the constraints as Parse reads them, in one form for each set:
// "cpu-cores=2 mem=2048M". One that is explicitly none is "mem=".
func (v Value) String() string { return strings.Join(v.formatPairs(nil), " ") }

func (v *Value) formatPairs(leftOut map[string]bool) (pairs []string) {
	for _, f := range v.allFields() {
		if text, ok := f.format(); ok && !leftOut[f.name] {
			pairs = append(pairs, f.name+"="+text)
		}
	}
	return pairs
}

// Value is a set of constraints. A nil field is not set; one that points at zero
// or an empty value says "none" explicitly, which a layer below does not change.
type Value struct {
	Arch         *string   `json:"arch,omitempty" yaml:"arch,omitempty"`
	Container    *string   `json:"container,omitempty" yaml:"container,omitempty"`
	CPUCores     *uint64   `json:"cpu-cores,omitempty" yaml:"cpu-cores,omitempty"`
	CPUPower     *uint64   `json:"cpu-power,omitempty" yaml:"cpu-power,omitempty"` // 100 is one EC2 unit
	InstanceType *string   `json:"instance-type,omitempty" yaml:"instance-type,omitempty"`
	Mem          *uint64   `json:"mem,omitempty" yaml:"mem,omitempty"`             // MB
	RootDisk     *uint64   `json:"root-disk,omitempty" yaml:"root-disk,omitempty"` // MB
	Tags         *[]string `json:"tags,omitempty" yaml:"tags,omitempty"`           // "^tag" excludes
}

// AsksAnything reports whether v demands anything of a machine. A constraint that is explicitly none
// demands nothing.
func (v Value) AsksAnything() bool { return len(v.Unmet(Hardware{})) > 0 || len(v.excludedTags()) > 0 }

// isWanted reports whether a constraint is set, and not to none.
func isWanted[T comparable](asked *T) bool {
	var none T
	return asked != nil && *asked != none
}

// Over returns v laid over base: the constraints that v sets, and those of base for the rest. An instance
// type decides on memory, processor and disk. So an instance type in v clears these in base, and any of
// these in v clears the instance type of base.
func (v Value) Over(base Value) Value {
	if isWanted(v.InstanceType) {
		base.Mem = nil
		base.CPUCores = nil
		base.CPUPower = nil
		base.RootDisk = nil
	}

	if v.firstSize() != "" {
		base.InstanceType = nil
	}

	return Value{
		Arch:         cmp.Or(v.Arch, base.Arch),
		Container:    cmp.Or(v.Container, base.Container),
		CPUCores:     cmp.Or(v.CPUCores, base.CPUCores),
		CPUPower:     cmp.Or(v.CPUPower, base.CPUPower),
		InstanceType: cmp.Or(v.InstanceType, base.InstanceType),
		Mem:          cmp.Or(v.Mem, base.Mem),
		RootDisk:     cmp.Or(v.RootDisk, base.RootDisk),
		Tags:         cmp.Or(v.Tags, base.Tags),
	}
}

// field is one constraint of a Value, with how it is set and printed.
type field struct {
	name   string
	set    func(text string) error          // empty: none
	format func() (text string, isSet bool) // as set takes it
}

// allFields returns all constraints, in the order in which they are printed.
func (v *Value) allFields() []field {
	return []field{
		newField("arch", &v.Arch, "", parseArch, formatWord),
		newField("container", &v.Container, "", parseWord, formatWord),
		newField("cpu-cores", &v.CPUCores, 0, parseCount, formatCount),
		newField("cpu-power", &v.CPUPower, 0, parseCount, formatCount),
		newField("instance-type", &v.InstanceType, "", parseWord, formatWord),
		newField("mem", &v.Mem, 0, parseSize, formatSize),
		newField("root-disk", &v.RootDisk, 0, parseSize, formatSize),
		newField("tags", &v.Tags, []string{}, parseTags, formatTags),
	}
}

// findField returns the constraint with that name, or with that as its other name.
func (v *Value) findField(name string) (field, bool) {
	if name == "cores" {
		name = "cpu-cores"
	}
	fields := v.allFields()
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}

	return fields[i], true
}

// newField returns one constraint by its name. at points to its value, none is the value of an empty text.
func newField[T any](name string, at **T, none T, parse func(string) (T, error), format func(T) string) field {
	return field{
		name: name,
		set: func(text string) (err error) {
			value := none
			if text != "" {
				value, err = parse(text)
			}
			*at = &value
			return err
		},
		format: func() (string, bool) {
			if *at == nil {
				return "", false
			}
			return format(**at), true
		},
	}
}

func parseArch(text string) (string, error) {
	known := []string{"amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"}
	if !slices.Contains(known, text) {
		return "", fmt.Errorf("%q is none of %s", text, strings.Join(known, ", "))
	}
	return text, nil
}

// wordPattern is of a provider's names, which go to terminals and into programs' arguments
// as they are.
var wordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+:-]*$`)
})

func parseWord(text string) (string, error) {
	if !wordPattern().MatchString(text) {
		return "", fmt.Errorf("%q must be letters, digits, and any of ._/+:- between them", text)
	}
	return text, nil
}

func formatWord(word string) string { return word }

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, errors.New("must be a non-negative integer")
	}
	return n, nil
}

// formatCount prints 0, which is none, as "".
func formatCount(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

func parseTags(text string) ([]string, error) {
	tags := strings.Split(text, ",")
	for _, tag := range tags {
		name := strings.TrimPrefix(tag, "^")
		if _, err := parseWord(name); err != nil {
			return nil, err
		}
		if name != tag && slices.Contains(tags, name) {
			return nil, fmt.Errorf("%q is both wanted and excluded", name)
		}
	}

	return tags, nil
}

func formatTags(tags []string) string { return strings.Join(tags, ",") }
