package plugin

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/constraints"
)

// toUTF8 replaces bytes that are not valid UTF-8, since protobuf strings must be valid.
func toUTF8(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func environmentToProto(e provider.Environment) *protocol.ConfigureRequest {
	config := map[string]string{}
	for key, value := range e.Config {
		config[toUTF8(key)] = toUTF8(value)
	}

	return &protocol.ConfigureRequest{
		Uuid:   toUTF8(e.UUID),
		Name:   toUTF8(e.Name),
		Dir:    toUTF8(e.Dir),
		Shared: e.Shared,
		Config: config,
	}
}

func environmentFromProto(r *protocol.ConfigureRequest) provider.Environment {
	return provider.Environment{
		UUID:   r.GetUuid(),
		Name:   r.GetName(),
		Dir:    r.GetDir(),
		Shared: r.GetShared(),
		Config: r.GetConfig(),
	}
}

func specToProto(s provider.Spec) *protocol.StartRequest {
	return &protocol.StartRequest{
		Environment: toUTF8(s.Environment),
		Machine:     toUTF8(s.Machine),
		Series:      toUTF8(s.Series),
		Constraints: constraintsToProto(s.Constraints),
		Placement:   toUTF8(s.Placement),
		Tools:       toUTF8(s.Tools),
		Token:       toUTF8(s.Token),
		Instance:    toUTF8(s.Instance),
	}
}

func specFromProto(r *protocol.StartRequest) provider.Spec {
	return provider.Spec{
		Environment: r.GetEnvironment(),
		Machine:     r.GetMachine(),
		Series:      r.GetSeries(),
		Constraints: constraintsFromProto(r.GetConstraints()),
		Placement:   r.GetPlacement(),
		Tools:       r.GetTools(),
		Token:       r.GetToken(),
		Instance:    r.GetInstance(),
	}
}

func constraintsToProto(v constraints.Value) *protocol.Constraints {
	c := &protocol.Constraints{
		Arch:         v.Arch,
		Container:    v.Container,
		CpuCores:     v.CPUCores,
		CpuPower:     v.CPUPower,
		InstanceType: v.InstanceType,
		Mem:          v.Mem,
		RootDisk:     v.RootDisk,
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
		Arch:         c.Arch,
		Container:    c.Container,
		CPUCores:     c.CpuCores,
		CPUPower:     c.CpuPower,
		InstanceType: c.InstanceType,
		Mem:          c.Mem,
		RootDisk:     c.RootDisk,
	}

	if c.Tags != nil {
		// An empty slice, unlike nil, explicitly means no tags.
		tags := append([]string{}, c.Tags.Values...)
		v.Tags = &tags
	}

	return v
}

func instanceToProto(i provider.Instance) *protocol.Instance {
	return &protocol.Instance{
		Id:          toUTF8(i.ID),
		Environment: toUTF8(i.Environment),
		Machine:     toUTF8(i.Machine),
		Running:     i.Running,
		Private:     toUTF8(i.Private),
		Public:      toUTF8(i.Public),
	}
}

func instanceFromProto(i *protocol.Instance) provider.Instance {
	return provider.Instance{
		ID:          i.GetId(),
		Environment: i.GetEnvironment(),
		Machine:     i.GetMachine(),
		Running:     i.GetRunning(),
		Private:     i.GetPrivate(),
		Public:      i.GetPublic(),
	}
}

// providerError is an error from the provider's process: its text, and the cause that errors.Is finds.
type providerError struct {
	text  string
	cause error // can be nil
}

func (f *providerError) Error() string { return f.text }
func (f *providerError) Unwrap() error { return f.cause }

// errorToStatus returns an error of gRPC with the text of err. Its code shows whether err is transient, or was
// caused by the end of a context. It returns nil for nil.
func errorToStatus(err error) error {
	if err == nil {
		return nil
	}

	code := codes.Unknown
	switch {
	case errors.Is(err, provider.ErrTransient):
		code = codes.Aborted
	case errors.Is(err, context.Canceled):
		code = codes.Canceled
	case errors.Is(err, context.DeadlineExceeded):
		code = codes.DeadlineExceeded
	}

	return status.Error(code, toUTF8(err.Error()))
}

// statusToError returns the provider's own error for an error of gRPC, without the text that gRPC adds. The
// result wraps the cause that the error's code shows, if any. If the provider gave no text, does not support
// the call, or has sent too large an answer, the text explains that. statusToError returns other errors, and
// nil, unchanged.
func statusToError(err error) error {
	if err == nil {
		return nil
	}
	s, isStatus := status.FromError(err)
	if !isStatus {
		return err
	}

	result := &providerError{text: s.Message()}
	switch s.Code() {
	case codes.Aborted, codes.Unavailable:
		result.cause = provider.ErrTransient
	case codes.Canceled:
		result.cause = context.Canceled
	case codes.DeadlineExceeded:
		result.cause = context.DeadlineExceeded
	case codes.ResourceExhausted:
		// If the text is not gRPC's own, the provider itself has returned this code.
		if strings.HasPrefix(result.text, "grpc: received message") {
			result.text = fmt.Sprintf("the provider's answer has more than %d bytes", maxAnswer)
		}
	case codes.Unimplemented:
		result.text = "the provider does not support this call: " + result.text
	}

	if result.text == "" {
		result.text = "the provider gave no reason (" + s.Code().String() + ")"
	}
	return result
}
