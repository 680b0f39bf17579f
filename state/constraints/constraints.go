// Package constraints has the constraints on a machine: how they are parsed, layered, and
// compared with what a machine has.
//
// It does no I/O and imports nothing of bijou. state stores its values, provision
// gives them to the providers, and multicall/juju reads them from operators.
package constraints

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
