package constraints

import (
	"fmt"
	"strings"
)

// Parse reads constraints as operators write them: NAME=VALUE, separated by
// spaces. An empty VALUE is explicitly none. Its errors need no more said.
func Parse(text string) (Value, error) {
	var v Value
	for _, part := range strings.Fields(text) {
		if err := v.set(part); err != nil {
			return Value{}, err
		}
	}
	if name := v.sized(); wants(v.InstanceType) && name != "" {
		return Value{}, fmt.Errorf("ambiguous constraints: %q overlaps with %q", "instance-type", name)
	}
	return v, nil
}

// set takes up one NAME=VALUE.
func (v *Value) set(part string) error {
	name, text, ok := strings.Cut(part, "=")
	if !ok || name == "" {
		return fmt.Errorf("malformed constraint %q", part)
	}
	f, ok := v.field(name)
	if !ok {
		return fmt.Errorf("unknown constraint %q", name)
	}
	if _, twice := f.text(); twice {
		return fmt.Errorf("bad %q constraint: already set", name)
	}
	if err := f.set(text); err != nil {
		return fmt.Errorf("bad %q constraint: %w", name, err)
	}
	return nil
}

// sized names the first constraint that v asks for and an instance type decides,
// too; "" if there is none.
func (v *Value) sized() string {
	switch {
	case wantsSome(v.Mem):
		return "mem"
	case wantsSome(v.CPUCores):
		return "cpu-cores"
	case wantsSome(v.CPUPower):
		return "cpu-power"
	case wantsSome(v.RootDisk):
		return "root-disk"
	}
	return ""
}

// String prints the constraints as Parse reads them, in one form for each set:
// "cpu-cores=2 mem=2048M". One that is explicitly none is "mem=".
func (v Value) String() string { return strings.Join(v.words(), " ") }

// words lists the constraints that are set, each as Parse reads it.
func (v *Value) words() []string {
	var words []string
	for _, f := range v.fields() {
		if text, ok := f.text(); ok {
			words = append(words, f.name+"="+text)
		}
	}
	return words
}
