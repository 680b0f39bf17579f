// Package constraints has the constraints on a machine: how they are parsed, layered, and
// compared with what a machine has.
//
// It does no I/O and imports nothing of bijou. state stores its values, provision
// gives them to the providers, and multicall/juju reads them from operators.
package constraints

import (
	"cmp"
	"fmt"
	"strings"
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

func (v *Value) parsePair(part string) error {
	name, text, ok := strings.Cut(part, "=")
	if !ok || name == "" {
		return fmt.Errorf("malformed constraint %q", part)
	}
	f, ok := v.findField(name)
	if !ok {
		return fmt.Errorf("unknown constraint %q", name)
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
	switch {
	case isWanted(v.Mem):
		return "mem"
	case isWanted(v.CPUCores):
		return "cpu-cores"
	case isWanted(v.CPUPower):
		return "cpu-power"
	case isWanted(v.RootDisk):
		return "root-disk"
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

// AsksAnything reports whether v asks anything of a machine. What is explicitly none asks nothing.
func (v Value) AsksAnything() bool { return len(v.Unmet(Hardware{})) > 0 || len(v.excludedTags()) > 0 }

// isWanted reports whether a constraint is set, and not to none.
func isWanted[T comparable](asked *T) bool {
	var none T
	return asked != nil && *asked != none
}

// Over returns v laid over base: what v sets, and the rest of base. As an instance
// type decides how much memory, processor and disk there is, one that v wants
// clears those of base, and each of those clears the instance type of base.
func (v Value) Over(base Value) Value {
	if isWanted(v.InstanceType) {
		base.Mem, base.CPUCores, base.CPUPower, base.RootDisk = nil, nil, nil, nil
	}
	if v.firstSize() != "" {
		base.InstanceType = nil
	}
	return Value{
		Arch: cmp.Or(v.Arch, base.Arch), Container: cmp.Or(v.Container, base.Container),
		CPUCores: cmp.Or(v.CPUCores, base.CPUCores), CPUPower: cmp.Or(v.CPUPower, base.CPUPower),
		InstanceType: cmp.Or(v.InstanceType, base.InstanceType),
		Mem:          cmp.Or(v.Mem, base.Mem), RootDisk: cmp.Or(v.RootDisk, base.RootDisk), Tags: cmp.Or(v.Tags, base.Tags),
	}
}
