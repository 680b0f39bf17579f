package constraints

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// field is one constraint of a Value, with how it is parsed and printed.
type field struct {
	name   string
	parse  func(text string) error          // empty: none
	format func() (text string, isSet bool) // as parse takes it
}

// allFields is in the order in which constraints are printed.
func (v *Value) allFields() []field {
	return []field{
		wordField("arch", &v.Arch, checkArch),
		wordField("container", &v.Container, checkWord),
		numberField("cpu-cores", &v.CPUCores, numberFormat{parseCount, formatCount}),
		numberField("cpu-power", &v.CPUPower, numberFormat{parseCount, formatCount}),
		wordField("instance-type", &v.InstanceType, checkWord),
		numberField("mem", &v.Mem, numberFormat{parseSize, formatSize}),
		numberField("root-disk", &v.RootDisk, numberFormat{parseSize, formatSize}),
		tagsField("tags", &v.Tags),
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

func wordField(name string, at **string, check func(string) error) field {
	return field{
		name: name,
		parse: func(text string) error {
			if text != "" {
				if err := check(text); err != nil {
					return err
				}
			}
			*at = &text
			return nil
		},
		format: func() (string, bool) {
			if *at == nil {
				return "", false
			}
			return **at, true
		},
	}
}

func knownArchs() []string {
	return []string{"amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"}
}

func checkArch(text string) error {
	if !slices.Contains(knownArchs(), text) {
		return fmt.Errorf("%q is none of %s", text, strings.Join(knownArchs(), ", "))
	}
	return nil
}

// wordPattern is of a provider's names, which go to terminals and into programs' arguments
// as they are.
var wordPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+:-]*$`)

func checkWord(text string) error {
	if !wordPattern.MatchString(text) {
		return fmt.Errorf("%q must be letters, digits, and any of ._/+:- between them", text)
	}
	return nil
}

type numberFormat struct {
	parse  func(string) (uint64, error)
	format func(uint64) string
}

func numberField(name string, at **uint64, kind numberFormat) field {
	return field{
		name: name,
		parse: func(text string) error {
			var n uint64
			if text != "" {
				var err error
				if n, err = kind.parse(text); err != nil {
					return err
				}
			}
			*at = &n
			return nil
		},
		format: func() (string, bool) {
			switch {
			case *at == nil:
				return "", false
			case **at == 0:
				return "", true
			}
			return kind.format(**at), true
		},
	}
}

func parseCount(text string) (uint64, error) {
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, errors.New("must be a non-negative integer")
	}
	return n, nil
}

func formatCount(n uint64) string { return strconv.FormatUint(n, 10) }

func tagsField(name string, at **[]string) field {
	return field{
		name: name,
		parse: func(text string) error {
			tags := []string{}
			if text != "" {
				tags = strings.Split(text, ",")
			}
			*at = &tags
			return checkTags(tags)
		},
		format: func() (string, bool) {
			if *at == nil {
				return "", false
			}
			return strings.Join(**at, ","), true
		},
	}
}

func checkTags(tags []string) error {
	for _, tag := range tags {
		name := strings.TrimPrefix(tag, "^")
		if err := checkWord(name); err != nil {
			return err
		}
		if name != tag && slices.Contains(tags, name) {
			return fmt.Errorf("%q is both wanted and excluded", name)
		}
	}
	return nil
}
