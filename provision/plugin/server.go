package plugin

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
)

// New makes a provider for an environment. An unknown or wrong setting is an error.
type New func(provider.Environment) (provider.Provider, error)

// server answers the protocol by a provider.
type server struct {
	protocol.UnimplementedProviderServer
	create New
	ready  func() // called before the provider is made
	calls  sync.WaitGroup

	mu       sync.Mutex
	provider provider.Provider
	ending   bool // no call begins any more
}

// errNotConfigured: a method was called before Configure.
var errNotConfigured = errors.New("internal error: the provider was not configured")

// errEnding: the process was told to end.
var errEnding = fmt.Errorf("the provider ends: %w", provider.ErrTransient)

// Configure makes the provider.
func (s *server) Configure(_ context.Context, r *protocol.ConfigureRequest) (*protocol.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider != nil {
		return nil, status.Error(codes.FailedPrecondition, "internal error: the provider was configured before")
	}
	s.ready()
	p, err := s.create(environmentFromProto(r))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, toUTF8(err.Error()))
	}
	s.provider = p
	return &protocol.ConfigureResponse{}, nil
}

func (s *server) refuseCalls() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ending = true
}

// answer answers a call by the provider, which does not end before.
func answer[T any](s *server, ask func(p provider.Provider) (T, error)) (response T, err error) {
	p, err := s.beginCall()
	if err != nil {
		return response, err
	}
	defer s.calls.Done()
	response, err = ask(p)
	return response, errorToStatus(err)
}

// The caller ends the call with calls.Done.
func (s *server) beginCall() (provider.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, errorToStatus(errEnding)
	}
	if s.provider == nil {
		return nil, errorToStatus(errNotConfigured)
	}
	s.calls.Add(1)
	return s.provider, nil
}

// Capabilities asks the provider.
func (s *server) Capabilities(ctx context.Context, _ *protocol.CapabilitiesRequest) (*protocol.CapabilitiesResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.CapabilitiesResponse, error) {
		c, err := p.Capabilities(ctx)
		return &protocol.CapabilitiesResponse{Name: toUTF8(c.Name), Isolated: c.Isolated, Remote: c.Remote}, err
	})
}

// Start has the provider start, and sends on what it prints.
func (s *server) Start(r *protocol.StartRequest, stream protocol.Provider_StartServer) error {
	p, err := s.beginCall()
	if err != nil {
		return err
	}
	defer s.calls.Done()
	boot := newLineWriter(func(line string) {
		// A client that is gone has cancelled the context, too.
		_ = stream.Send(&protocol.StartResponse{Progress: &protocol.StartResponse_Boot{Boot: toUTF8(line)}})
	})
	i, err := p.Start(stream.Context(), specFromProto(r), boot)
	boot.close()
	if err != nil {
		return errorToStatus(err)
	}
	return stream.Send(&protocol.StartResponse{Progress: &protocol.StartResponse_Instance{Instance: instanceToProto(i)}})
}

// Stop asks the provider.
func (s *server) Stop(ctx context.Context, r *protocol.StopRequest) (*protocol.StopResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.StopResponse, error) {
		return &protocol.StopResponse{}, p.Stop(ctx, r.GetInstance())
	})
}

// Instances asks the provider.
func (s *server) Instances(ctx context.Context, _ *protocol.InstancesRequest) (*protocol.InstancesResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.InstancesResponse, error) {
		all, err := p.Instances(ctx)
		response := &protocol.InstancesResponse{}
		for _, i := range all {
			response.Instances = append(response.Instances, instanceToProto(i))
		}
		return response, err
	})
}
