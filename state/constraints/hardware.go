package constraints

import (
	"slices"
	"strings"
)

// Hardware is what is known of a machine. An empty or zero field is not known,
// and satisfies nothing that asks for it; Tags are all that it has.
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

// Hardware is a machine that has what v asks for and is not known to have more:
// so a host's facts can be written as constraints are.
func (v Value) Hardware() Hardware {
	return Hardware{
		Arch: value(v.Arch), Container: value(v.Container), CPUCores: value(v.CPUCores), CPUPower: value(v.CPUPower),
		InstanceType: value(v.InstanceType), Mem: value(v.Mem), RootDisk: value(v.RootDisk), Tags: v.included(),
	}
}

// value is what p points at; zero if at nothing.
func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}

// SatisfiedBy says if the machine is known to satisfy all of v.
func (v Value) SatisfiedBy(h Hardware) bool { return len(v.Unmet(h)) == 0 }

// Unmet lists those of v that the machine is not known to satisfy, as they are
// printed: "mem=2048M".
func (v Value) Unmet(h Hardware) (unmet []string) {
	met := map[string]bool{
		"arch": is(v.Arch, h.Arch), "container": is(v.Container, h.Container), "instance-type": is(v.InstanceType, h.InstanceType),
		"cpu-cores": value(v.CPUCores) <= h.CPUCores, "cpu-power": value(v.CPUPower) <= h.CPUPower,
		"mem": value(v.Mem) <= h.Mem, "root-disk": value(v.RootDisk) <= h.RootDisk, "tags": v.tagged(h.Tags),
	}
	for _, f := range v.fields() {
		if text, ok := f.text(); ok && !met[f.name] {
			unmet = append(unmet, f.name+"="+text)
		}
	}
	return unmet
}

// is says if the fact is what is asked for, if anything is.
func is(asked *string, fact string) bool { return !wants(asked) || *asked == fact }

// tagged says if a machine with these tags has all that v wants, and none that
// it excludes.
func (v *Value) tagged(tags []string) bool {
	has := func(tag string) bool { return slices.Contains(tags, tag) }
	lacks := func(tag string) bool { return !has(tag) }
	return !slices.ContainsFunc(v.included(), lacks) && !slices.ContainsFunc(v.excluded(), has)
}

// included lists the tags that are wanted.
func (v *Value) included() (tags []string) {
	for _, tag := range value(v.Tags) {
		if !strings.HasPrefix(tag, "^") {
			tags = append(tags, tag)
		}
	}
	return tags
}

// excluded lists the tags that are not, without the "^".
func (v *Value) excluded() (tags []string) {
	for _, tag := range value(v.Tags) {
		if name, not := strings.CutPrefix(tag, "^"); not {
			tags = append(tags, name)
		}
	}
	return tags
}

// Satisfies says if whatever machine was made for v satisfies what is asked, too.
// It may have tags that v does not name, unless v excludes them.
func (v Value) Satisfies(asked Value) bool {
	kept := func(tag string) bool { return !slices.Contains(v.excluded(), tag) }
	return asked.SatisfiedBy(v.Hardware()) && !slices.ContainsFunc(asked.excluded(), kept)
}
