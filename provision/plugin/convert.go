package plugin

import (
	"strings"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/constraints"
)

// text makes a string one that may cross: protobuf's strings are UTF-8.
func text(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func environmentOut(e provider.Environment) *protocol.ConfigureRequest {
	config := map[string]string{}
	for key, value := range e.Config {
		config[text(key)] = text(value)
	}
	return &protocol.ConfigureRequest{
		Uuid: text(e.UUID), Name: text(e.Name), Dir: text(e.Dir), Shared: e.Shared, Config: config,
	}
}

func environmentIn(r *protocol.ConfigureRequest) provider.Environment {
	return provider.Environment{
		UUID: r.GetUuid(), Name: r.GetName(), Dir: r.GetDir(), Shared: r.GetShared(), Config: r.GetConfig(),
	}
}

func specOut(s provider.Spec) *protocol.StartRequest {
	return &protocol.StartRequest{
		Environment: text(s.Environment), Machine: text(s.Machine), Series: text(s.Series),
		Constraints: constraintsOut(s.Constraints), Placement: text(s.Placement), Tools: text(s.Tools), Token: text(s.Token),
		Instance: text(s.Instance),
	}
}

func specIn(r *protocol.StartRequest) provider.Spec {
	return provider.Spec{
		Environment: r.GetEnvironment(), Machine: r.GetMachine(), Series: r.GetSeries(),
		Constraints: constraintsIn(r.GetConstraints()), Placement: r.GetPlacement(), Tools: r.GetTools(), Token: r.GetToken(),
		Instance: r.GetInstance(),
	}
}

func constraintsOut(v constraints.Value) *protocol.Constraints {
	c := &protocol.Constraints{
		Arch: v.Arch, Container: v.Container, CpuCores: v.CPUCores, CpuPower: v.CPUPower,
		InstanceType: v.InstanceType, Mem: v.Mem, RootDisk: v.RootDisk,
	}
	if v.Tags != nil {
		c.Tags = &protocol.Tags{Values: *v.Tags}
	}
	return c
}

func constraintsIn(c *protocol.Constraints) constraints.Value {
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

func instanceOut(i provider.Instance) *protocol.Instance {
	return &protocol.Instance{
		Id: text(i.ID), Environment: text(i.Environment), Machine: text(i.Machine), Running: i.Running,
		Private: text(i.Private), Public: text(i.Public),
	}
}

func instanceIn(i *protocol.Instance) provider.Instance {
	return provider.Instance{
		ID: i.GetId(), Environment: i.GetEnvironment(), Machine: i.GetMachine(), Running: i.GetRunning(),
		Private: i.GetPrivate(), Public: i.GetPublic(),
	}
}
