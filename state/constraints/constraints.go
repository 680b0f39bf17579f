// Package constraints is what is asked of a machine: how it is written, layered,
// and compared with what a machine has.
//
// It is pure and imports nothing of bijou. state stores its values, provision
// hands them to the providers, and multicall/juju reads them from operators.
package constraints

// Value is a set of constraints. A nil field is not set; one that points at zero
// or an empty value says "none" explicitly, which a layer below does not change.
type Value struct {
	Arch         *string   `json:"arch,omitempty"`
	Container    *string   `json:"container,omitempty"`
	CPUCores     *uint64   `json:"cpu-cores,omitempty"`
	CPUPower     *uint64   `json:"cpu-power,omitempty"` // 100 is one EC2 unit
	InstanceType *string   `json:"instance-type,omitempty"`
	Mem          *uint64   `json:"mem,omitempty"`       // MB
	RootDisk     *uint64   `json:"root-disk,omitempty"` // MB
	Tags         *[]string `json:"tags,omitempty"`      // "^tag" excludes
}
