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

// Hardware describes a machine, as far as it is known. An empty or zero field is not known,
// and satisfies no constraint on it; Tags are all that it has.
type Hardware struct {
	Arch         string
	Container    string
	CPUCores     uint64
	CPUPower     uint64 // 100 is one EC2 unit
	InstanceType string
	Mem          uint64 // MB
	RootDisk     uint64 // MB
	Tags         []string
}

// Hardware returns the smallest machine that meets v. So the facts of a host can be written in the way of
// constraints.
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

// ArchOf returns the constraints' name for an architecture, which may be given by the name of uname -m or of Go.
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

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// SatisfiedBy reports whether the machine is known to satisfy all of v.
func (v Value) SatisfiedBy(h Hardware) bool { return len(v.Unmet(h)) == 0 }

// Unmet returns the constraints of v that the machine is not known to satisfy, as they
// are printed: "mem=2048M".
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
	return v.formatPairs(met)
}

func meetsWord(asked *string, fact string) bool { return !isWanted(asked) || *asked == fact }

func (v *Value) meetsTags(tags []string) bool {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	lacks := func(tag string) bool { return !has(tag) }
	return !slices.ContainsFunc(v.wantedTags(), lacks) && !slices.ContainsFunc(v.excludedTags(), has)
}

func (v *Value) wantedTags() (tags []string) {
	for _, tag := range deref(v.Tags) {
		if !strings.HasPrefix(tag, "^") {
			tags = append(tags, tag)
		}
	}
	return tags
}

// excludedTags returns the tags that are marked with "^", without that mark.
func (v *Value) excludedTags() (tags []string) {
	for _, tag := range deref(v.Tags) {
		if name, not := strings.CutPrefix(tag, "^"); not {
			tags = append(tags, name)
		}
	}
	return tags
}

// Satisfies reports whether every machine that satisfies v satisfies asked, too. It
// may have tags that v does not name, unless v excludes them.
func (v Value) Satisfies(asked Value) bool {
	kept := func(tag string) bool { return !slices.Contains(v.excludedTags(), tag) }
	return asked.SatisfiedBy(v.Hardware()) && !slices.ContainsFunc(asked.excludedTags(), kept)
}

// sizePattern is of a float with a suffix; no suffix is M.
var sizePattern = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^([0-9]+\.?[0-9]*|\.[0-9]+)([MGTP]?)$`)
})

// maxSize is the greatest number of MB that a float holds exactly.
const maxSize = 1 << 53

// parseSize reads "1.5G" as MB, rounded up: 1536.
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

// formatSize prints 0, which is none, as "".
func formatSize(n uint64) string {
	if n == 0 {
		return ""
	}
	return strconv.FormatUint(n, 10) + "M"
}
