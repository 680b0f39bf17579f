// Package constraints parses and layers the constraints on machines, and compares them with a machine's
// hardware.
//
// It does no I/O.
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

// Parse parses constraints as operators write them: NAME=VALUE, separated by spaces. An empty VALUE sets the
// constraint to none. Parse returns an error if the text wants both an instance type and a constraint that the
// type determines. Its errors say that they are about constraints, so callers need not add a prefix.
func Parse(text string) (Value, error) {
	var v Value
	for _, part := range strings.Fields(text) {
		if err := v.parsePair(part); err != nil {
			return Value{}, err
		}
	}

	sizeName := v.firstSize() // empty if v wants no constraint that the type determines
	if isWanted(v.InstanceType) && sizeName != "" {
		return Value{}, fmt.Errorf("ambiguous constraints: %q overlaps with %q", "instance-type", sizeName)
	}

	return v, nil
}

// unknownError is the error for an unknown name of a constraint.
type unknownError string

// Error returns Juju's message for an unknown constraint.
func (u unknownError) Error() string { return fmt.Sprintf("unknown constraint %q", string(u)) }

// Hint lists the names of all constraints.
func (unknownError) Hint() string {
	var v Value
	var names []string
	for _, f := range v.allFields() {
		names = append(names, f.name)
	}
	return "constraints: " + strings.Join(names, ", ")
}

// parsePair parses a word NAME=VALUE and sets the constraint. It returns an error if the constraint is
// already set.
func (v *Value) parsePair(part string) error {
	name, text, ok := strings.Cut(part, "=")
	if !ok || name == "" {
		return fmt.Errorf("malformed constraint %q", part)
	}

	f, ok := v.findField(name)
	if !ok {
		return unknownError(name)
	}
	if _, isSet := f.format(); isSet {
		return fmt.Errorf("bad %q constraint: already set", name)
	}
	if err := f.set(text); err != nil {
		return fmt.Errorf("bad %q constraint: %w", name, err)
	}

	return nil
}

// firstSize returns the name of the first constraint that v wants and that an instance type would also
// determine. It returns "" if there is no such constraint.
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

// String formats the constraints for Parse: "cpu-cores=2 mem=2048M". Equal values have the same text. A
// constraint that is set to none has no value: "mem=".
func (v Value) String() string { return strings.Join(v.formatPairs(nil), " ") }

// formatPairs formats each constraint that is set as NAME=VALUE, except those whose names are in leftOut.
func (v *Value) formatPairs(leftOut map[string]bool) (pairs []string) {
	for _, f := range v.allFields() {
		if text, ok := f.format(); ok && !leftOut[f.name] {
			pairs = append(pairs, f.name+"="+text)
		}
	}
	return pairs
}

// Value is a set of constraints. A nil field is not set. A field that points at zero or an empty value is set
// to none, which overrides the layers below.
type Value struct {
	Arch         *string   `json:"arch,omitempty" yaml:"arch,omitempty"`
	Container    *string   `json:"container,omitempty" yaml:"container,omitempty"`
	CPUCores     *uint64   `json:"cpu-cores,omitempty" yaml:"cpu-cores,omitempty"`
	CPUPower     *uint64   `json:"cpu-power,omitempty" yaml:"cpu-power,omitempty"` // 100 is one EC2 unit
	InstanceType *string   `json:"instance-type,omitempty" yaml:"instance-type,omitempty"`
	Mem          *uint64   `json:"mem,omitempty" yaml:"mem,omitempty"`             // MiB
	RootDisk     *uint64   `json:"root-disk,omitempty" yaml:"root-disk,omitempty"` // MiB
	Tags         *[]string `json:"tags,omitempty" yaml:"tags,omitempty"`           // "^tag" excludes machines with the tag
}

// AsksAnything reports whether v requires anything of a machine. A constraint that is set to none requires
// nothing.
func (v Value) AsksAnything() bool { return len(v.Unmet(Hardware{})) > 0 || len(v.excludedTags()) > 0 }

// isWanted reports whether a constraint is set to a value other than none.
func isWanted[T comparable](asked *T) bool {
	var none T
	return asked != nil && *asked != none
}

// Over returns the constraints that v sets and, for those that v does not set, the constraints of base. An
// instance type determines memory, processor and disk. So if v wants an instance type, Over ignores these
// constraints of base. If v wants one of them, Over ignores the instance type of base. v does not want a
// constraint that it sets to none.
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

// field is one constraint of a Value, with functions to set and format it.
type field struct {
	name   string
	set    func(text string) error          // parses and sets the value; an empty text means none
	format func() (text string, isSet bool) // formats the value for set
}

// allFields returns all constraints, in the order in which they are printed.
func (v *Value) allFields() []field {
	// The third argument is the value that stands for none.
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

// findField returns the constraint called name. cores is a second name for the constraint cpu-cores.
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

// newField returns the constraint called name. at points to the field of its Value. none is the value that an
// empty text sets. parse converts any other text to a value, and format converts each value to text.
func newField[T any](name string, at **T, none T, parse func(string) (T, error), format func(T) string) field {
	return field{
		name: name,
		set: func(text string) (err error) {
			value := none
			if text != "" {
				value, err = parse(text)
				if err != nil {
					return err
				}
			}

			*at = &value
			return nil
		},
		format: func() (string, bool) {
			if *at == nil {
				return "", false
			}
			return format(**at), true
		},
	}
}

// parseArch returns the architecture, or an error if it is unknown.
func parseArch(text string) (string, error) {
	known := []string{"amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"}
	if !slices.Contains(known, text) {
		return "", fmt.Errorf("%q is not one of %s", text, strings.Join(known, ", "))
	}
	return text, nil
}

// wordPattern matches names that a provider has chosen, for example of an instance type. It is strict, since
// the names are printed on terminals and passed to programs unescaped.
var wordPattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+:-]*$`)
})

// parseWord returns the word, or an error if it does not match wordPattern.
func parseWord(text string) (string, error) {
	if !wordPattern().MatchString(text) {
		return "", fmt.Errorf("%q must have only letters and digits, and between them any of ._/+:-", text)
	}
	return text, nil
}

func formatWord(word string) string { return word }

// parseCount parses a non-negative integer.
func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, errors.New("must be a non-negative integer")
	}
	return n, nil
}

// formatCount formats a number. It returns "" for 0, which sets the constraint to none.
func formatCount(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10)
}

// parseTags parses tags that are separated by commas. ^ before a tag excludes it. parseTags returns an error if
// a tag is both required and excluded, or does not match wordPattern.
func parseTags(text string) ([]string, error) {
	tags := strings.Split(text, ",")
	for _, tag := range tags {
		name := strings.TrimPrefix(tag, "^")
		if _, err := parseWord(name); err != nil {
			return nil, err
		}
		if name != tag && slices.Contains(tags, name) {
			return nil, fmt.Errorf("%q is both required and excluded", name)
		}
	}

	return tags, nil
}

func formatTags(tags []string) string { return strings.Join(tags, ",") }
