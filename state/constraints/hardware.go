package constraints

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// Hardware has the known facts about a machine. An empty or zero field is unknown, and does not satisfy a
// constraint on that field.
type Hardware struct {
	Arch         string
	Container    string
	CPUCores     uint64
	CPUPower     uint64 // 100 is one EC2 unit
	InstanceType string
	Mem          uint64   // MiB
	RootDisk     uint64   // MiB
	Tags         []string // all tags of the machine
}

// Hardware returns the hardware of the smallest machine that satisfies v. Operators also use the syntax of
// constraints to describe a host, and Hardware then returns the host's hardware.
func (v Value) Hardware() Hardware {
	return Hardware{
		Arch:         deref(v.Arch),
		Container:    deref(v.Container),
		CPUCores:     deref(v.CPUCores),
		CPUPower:     deref(v.CPUPower),
		InstanceType: deref(v.InstanceType),
		Mem:          deref(v.Mem),
		RootDisk:     deref(v.RootDisk),
		Tags:         v.wantedTags(),
	}
}

// ArchOf returns the name that an architecture has in constraints. It accepts the names of uname -m and of Go,
// and returns any other name unchanged.
func ArchOf(name string) string {
	known := map[string]string{
		"x86_64":  "amd64",
		"aarch64": "arm64",
		"armv7l":  "armhf",
		"armv8l":  "armhf",
		"arm":     "armhf",
		"i686":    "i386",
		"386":     "i386",
		"ppc64le": "ppc64el",
	}
	return cmp.Or(known[name], name)
}

// HostArch returns the architecture of this binary.
func HostArch() string { return ArchOf(runtime.GOARCH) }

// deref returns the value at p, or the zero value if p is nil.
func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// SatisfiedBy reports whether the machine is known to satisfy all of v.
func (v Value) SatisfiedBy(h Hardware) bool { return len(v.Unmet(h)) == 0 }

// Unmet returns the constraints of v that the machine is not known to satisfy, each in the form "mem=2048M".
func (v Value) Unmet(h Hardware) []string {
	met := map[string]bool{
		"arch":          meetsWord(v.Arch, h.Arch),
		"container":     meetsWord(v.Container, h.Container),
		"instance-type": meetsWord(v.InstanceType, h.InstanceType),
		"cpu-cores":     deref(v.CPUCores) <= h.CPUCores,
		"cpu-power":     deref(v.CPUPower) <= h.CPUPower,
		"mem":           deref(v.Mem) <= h.Mem,
		"root-disk":     deref(v.RootDisk) <= h.RootDisk,
		"tags":          v.meetsTags(h.Tags),
	}
	// formatPairs leaves out the constraints that are met.
	return v.formatPairs(met)
}

// meetsWord reports whether the constraint is not set, or is equal to the fact about the machine.
func meetsWord(asked *string, fact string) bool { return !isWanted(asked) || *asked == fact }

// meetsTags reports whether a machine with these tags has all tags that v requires, and none that v excludes.
func (v *Value) meetsTags(tags []string) bool {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	lacks := func(tag string) bool { return !has(tag) }
	return !slices.ContainsFunc(v.wantedTags(), lacks) && !slices.ContainsFunc(v.excludedTags(), has)
}

// wantedTags returns the tags that a machine must have.
func (v *Value) wantedTags() (tags []string) {
	for _, tag := range deref(v.Tags) {
		if !strings.HasPrefix(tag, "^") {
			tags = append(tags, tag)
		}
	}
	return tags
}

// excludedTags returns the tags that a machine must not have, without the mark "^" that they have in Tags.
func (v *Value) excludedTags() (tags []string) {
	for _, tag := range deref(v.Tags) {
		name, isExcluded := strings.CutPrefix(tag, "^")
		if isExcluded {
			tags = append(tags, name)
		}
	}
	return tags
}

// Satisfies reports whether every machine that satisfies v also satisfies the constraints in asked.
func (v Value) Satisfies(asked Value) bool {
	// A machine that satisfies v can have any tag that v does not exclude.
	isAllowed := func(tag string) bool { return !slices.Contains(v.excludedTags(), tag) }
	return asked.SatisfiedBy(v.Hardware()) && !slices.ContainsFunc(asked.excludedTags(), isAllowed)
}

// sizePattern matches a float with an optional suffix. No suffix means M.
var sizePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([MGTP]?)$`)
})

// maxSize is the greatest number of MiB that a float represents exactly.
const maxSize = 1 << 53

// parseSize parses a size and returns it in MiB, rounded up: 1536 for "1.5G".
func parseSize(text string) (uint64, error) {
	parts := sizePattern().FindStringSubmatch(text)
	if parts == nil {
		return 0, errors.New("must be a non-negative float with optional M/G/T/P suffix")
	}
	n, err := strconv.ParseFloat(parts[1], 64)
	scale := map[string]float64{"": 1, "M": 1, "G": 1 << 10, "T": 1 << 20, "P": 1 << 30}[parts[2]]
	if err != nil || n*scale > maxSize {
		return 0, fmt.Errorf("%.40q is too much", text)
	}

	return uint64(math.Ceil(n * scale)), nil
}

// formatSize formats a size in MiB. It returns "" for 0, which sets the constraint to none.
func formatSize(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10) + "M"
}
