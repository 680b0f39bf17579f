package plugin

import (
	"strings"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/constraints"
)

// protobuf's strings are UTF-8.
func toUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func environmentToProto(e provider.Environment) *protocol.ConfigureRequest {
	config := map[string]string{}
	for key, value := range e.Config {
		config[toUTF8(key)] = toUTF8(value)
	}
	return &protocol.ConfigureRequest{
		Uuid: toUTF8(e.UUID), Name: toUTF8(e.Name), Dir: toUTF8(e.Dir), Shared: e.Shared, Config: config,
	}
}

func environmentFromProto(r *protocol.ConfigureRequest) provider.Environment {
	return provider.Environment{
		UUID: r.GetUuid(), Name: r.GetName(), Dir: r.GetDir(), Shared: r.GetShared(), Config: r.GetConfig(),
	}
}

func specToProto(s provider.Spec) *protocol.StartRequest {
	return &protocol.StartRequest{
		Environment: toUTF8(s.Environment), Machine: toUTF8(s.Machine), Series: toUTF8(s.Series),
		Constraints: constraintsToProto(s.Constraints), Placement: toUTF8(s.Placement), Tools: toUTF8(s.Tools), Token: toUTF8(s.Token),
		Instance: toUTF8(s.Instance),
	}
}

func specFromProto(r *protocol.StartRequest) provider.Spec {
	return provider.Spec{
		Environment: r.GetEnvironment(), Machine: r.GetMachine(), Series: r.GetSeries(),
		Constraints: constraintsFromProto(r.GetConstraints()), Placement: r.GetPlacement(), Tools: r.GetTools(), Token: r.GetToken(),
		Instance: r.GetInstance(),
	}
}

func constraintsToProto(v constraints.Value) *protocol.Constraints {
	c := &protocol.Constraints{
		Arch: v.Arch, Container: v.Container, CpuCores: v.CPUCores, CpuPower: v.CPUPower,
		InstanceType: v.InstanceType, Mem: v.Mem, RootDisk: v.RootDisk,
	}
	if v.Tags != nil {
		c.Tags = &protocol.Tags{Values: *v.Tags}
	}
	return c
}

func constraintsFromProto(c *protocol.Constraints) constraints.Value {
	if c == nil {
		return constraints.Value{}
	}
	v := constraints.Value{
		Arch: c.Arch, Container: c.Container, CPUCores: c.CpuCores, CPUPower: c.CpuPower,
		InstanceType: c.InstanceType, Mem: c.Mem, RootDisk: c.RootDisk,
	}
	if c.Tags != nil {
		tags := append([]string{}, c.Tags.Values...) // empty, not nil: explicitly none
		v.Tags = &tags
	}
	return v
}

func instanceToProto(i provider.Instance) *protocol.Instance {
	return &protocol.Instance{
		Id: toUTF8(i.ID), Environment: toUTF8(i.Environment), Machine: toUTF8(i.Machine), Running: i.Running,
		Private: toUTF8(i.Private), Public: toUTF8(i.Public),
	}
}

func instanceFromProto(i *protocol.Instance) provider.Instance {
	return provider.Instance{
		ID: i.GetId(), Environment: i.GetEnvironment(), Machine: i.GetMachine(), Running: i.GetRunning(),
		Private: i.GetPrivate(), Public: i.GetPublic(),
	}
}
