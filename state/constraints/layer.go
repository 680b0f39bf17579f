package constraints

import "cmp"

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
