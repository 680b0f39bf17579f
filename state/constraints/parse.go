package constraints

import (
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
