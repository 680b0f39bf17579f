package constraints

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// field is one constraint of a Value: how it is read and printed.
type field struct {
	name string
	set  func(text string) error          // empty: none
	text func() (text string, isSet bool) // as set takes it
}

// fields lists the constraints of v, in the order in which they are printed.
func (v *Value) fields() []field {
	return []field{
		wordField("arch", &v.Arch, checkArch),
		wordField("container", &v.Container, checkWord),
		numberField("cpu-cores", &v.CPUCores, numbers{parseCount, printCount}),
		numberField("cpu-power", &v.CPUPower, numbers{parseCount, printCount}),
		wordField("instance-type", &v.InstanceType, checkWord),
		numberField("mem", &v.Mem, numbers{parseSize, printSize}),
		numberField("root-disk", &v.RootDisk, numbers{parseSize, printSize}),
		tagsField("tags", &v.Tags),
	}
}

// field finds a constraint by its name, or by another that it goes by.
func (v *Value) field(name string) (field, bool) {
	if name == "cores" {
		name = "cpu-cores"
	}
	fields := v.fields()
	i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
	if i < 0 {
		return field{}, false
	}
	return fields[i], true
}

func wordField(name string, at **string, check func(string) error) field {
	return field{
		name: name,
		set: func(text string) error {
			if text != "" {
				if err := check(text); err != nil {
					return err
				}
			}
			*at = &text
			return nil
		},
		text: func() (string, bool) {
			if *at == nil {
				return "", false
			}
			return **at, true
		},
	}
}

// architectures are those that machines may have.
func architectures() []string {
	return []string{"amd64", "arm64", "armhf", "i386", "ppc64el", "riscv64", "s390x"}
}

func checkArch(text string) error {
	if !slices.Contains(architectures(), text) {
		return fmt.Errorf("%q is none of %s", text, strings.Join(architectures(), ", "))
	}
	return nil
}

// word is what a provider may call something: it goes to terminals and into
// programs' arguments as it is.
var word = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/+:-]*$`)

func checkWord(text string) error {
	if !word.MatchString(text) {
		return fmt.Errorf("%q must be letters, digits, and any of ._/+:- between them", text)
	}
	return nil
}

// numbers is how one kind of number is written.
type numbers struct {
	parse func(string) (uint64, error)
	print func(uint64) string
}

func numberField(name string, at **uint64, kind numbers) field {
	return field{
		name: name,
		set: func(text string) error {
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
		text: func() (string, bool) {
			switch {
			case *at == nil:
				return "", false
			case **at == 0:
				return "", true
			}
			return kind.print(**at), true
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

func printCount(n uint64) string { return strconv.FormatUint(n, 10) }

func tagsField(name string, at **[]string) field {
	return field{
		name: name,
		set: func(text string) error {
			tags := []string{}
			if text != "" {
				tags = strings.Split(text, ",")
			}
			*at = &tags
			return checkTags(tags)
		},
		text: func() (string, bool) {
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
