package constraints

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"bijou/state/lazyregexp"
)

// field is one constraint of a Value, with how it is set and printed.
type field struct {
	name   string
	set    func(text string) error          // empty: none
	format func() (text string, isSet bool) // as set takes it
}

// allFields is in the order in which constraints are printed.
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

// findField knows the other names of constraints, too.
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

func knownArchs() []string {
	return []string{"amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"}
}

func parseArch(text string) (string, error) {
	if !slices.Contains(knownArchs(), text) {
		return "", fmt.Errorf("%q is none of %s", text, strings.Join(knownArchs(), ", "))
	}
	return text, nil
}

// wordPattern is of a provider's names, which go to terminals and into programs' arguments
// as they are.
var wordPattern = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._/+:-]*$`)

func parseWord(text string) (string, error) {
	if !wordPattern.MatchString(text) {
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
