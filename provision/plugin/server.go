package plugin

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/text"
)

// New returns a provider for an environment. It returns an error for an unknown or invalid setting.
type New func(provider.Environment) (provider.Provider, error)

// server implements the protocol's service with a provider.
type server struct {
	protocol.UnimplementedProviderServer
	create       New
	beforeCreate func()         // restores stderr, and removes the handshake's variables
	calls        sync.WaitGroup // the running calls

	mu       sync.Mutex
	provider provider.Provider
	ending   bool // the server is shutting down, and accepts no more calls
}

// Configure creates the provider. The client calls it once, before all other calls. It returns an error if the
// provider already exists or cannot be created.
func (s *server) Configure(_ context.Context, r *protocol.ConfigureRequest) (*protocol.ConfigureResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider != nil {
		return nil, status.Error(codes.FailedPrecondition, "internal error: the provider is already configured")
	}

	s.beforeCreate()
	p, err := s.create(environmentFromProto(r))
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, toUTF8(err.Error()))
	}

	s.provider = p
	return &protocol.ConfigureResponse{}, nil
}

// answer calls ask with the provider, and converts the error. If the server is shutting down or is not configured,
// it returns an error and does not call ask. The server waits for ask before it ends, up to shutdownTimeout.
func answer[T any](s *server, ask func(p provider.Provider) (T, error)) (response T, err error) {
	p, err := s.beginCall()
	if err != nil {
		return response, err
	}
	defer s.calls.Done()
	response, err = ask(p)
	return response, errorToStatus(err)
}

// beginCall returns the provider for a call. The caller must call calls.Done when the call has ended. If the
// server is shutting down or is not configured, beginCall returns an error and counts no call.
func (s *server) beginCall() (provider.Provider, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending {
		return nil, errorToStatus(fmt.Errorf("the provider is shutting down: %w", provider.ErrTransient))
	}
	if s.provider == nil {
		return nil, errorToStatus(errors.New("internal error: the provider was not configured"))
	}

	s.calls.Add(1)
	return s.provider, nil
}

// Capabilities returns the provider's capabilities.
func (s *server) Capabilities(
	ctx context.Context,
	_ *protocol.CapabilitiesRequest,
) (*protocol.CapabilitiesResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.CapabilitiesResponse, error) {
		c, err := p.Capabilities(ctx)
		return &protocol.CapabilitiesResponse{Name: toUTF8(c.Name), Isolated: c.Isolated, Remote: c.Remote}, err
	})
}

// Start starts an instance. It sends each line of the instance's output, and at the end the instance, to the
// client.
func (s *server) Start(r *protocol.StartRequest, stream protocol.Provider_StartServer) error {
	p, err := s.beginCall()
	if err != nil {
		return err
	}
	defer s.calls.Done()

	boot := &text.LineWriter{Max: maxLine, Emit: func(line string) {
		// Send fails only if the client is gone, which also cancels the context of the call.
		_ = stream.Send(&protocol.StartResponse{Progress: &protocol.StartResponse_Boot{Boot: toUTF8(line)}})
	}}

	i, err := p.Start(stream.Context(), specFromProto(r), boot)
	boot.Close() // sends an unfinished last line
	if err != nil {
		return errorToStatus(err)
	}

	return stream.Send(&protocol.StartResponse{Progress: &protocol.StartResponse_Instance{Instance: instanceToProto(i)}})
}

// Stop stops an instance.
func (s *server) Stop(ctx context.Context, r *protocol.StopRequest) (*protocol.StopResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.StopResponse, error) {
		return &protocol.StopResponse{}, p.Stop(ctx, r.GetInstance())
	})
}

// Instances returns the provider's instances.
func (s *server) Instances(ctx context.Context, _ *protocol.InstancesRequest) (*protocol.InstancesResponse, error) {
	return answer(s, func(p provider.Provider) (*protocol.InstancesResponse, error) {
		instances, err := p.Instances(ctx)
		if err != nil {
			return nil, err
		}

		response := &protocol.InstancesResponse{}
		for _, i := range instances {
			response.Instances = append(response.Instances, instanceToProto(i))
		}
		return response, nil
	})
}

// ErrByHand means that no provisioner has started the executable.
var ErrByHand = errors.New("only the provisioner can start a provider")

// shutdownTimeout limits the wait for running calls when the server ends.
const shutdownTimeout = 10 * time.Second

// Serve makes this process a provider until the client ends it or dies, or until it gets SIGTERM. It then
// refuses new calls, waits up to shutdownTimeout for the running ones, and returns nil. It uses stdout for the
// protocol. It must be called once, by main. It returns ErrByHand at once if no provisioner has started this
// process.
func Serve(create New) error {
	if os.Getenv(cookie) != cookieValue {
		return ErrByHand
	}

	stderr := os.Stderr
	s := &server{create: create, beforeCreate: func() {
		// go-plugin has replaced stderr with a stream, in which the last lines of a crash would be lost.
		os.Stderr = stderr
		forgetHandshake()
	}}

	// The kernel sends SIGTERM when the client dies.
	signalled, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	// The watcher ends only when signalled is done, so cancel must run before the wait.
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer cancel()

	goplugin.Serve(&goplugin.ServeConfig{
		HandshakeConfig: handshake(),
		Plugins:         goplugin.PluginSet{service: &grpcPlugin{server: s}},
		GRPCServer: func(options []grpc.ServerOption) *grpc.Server {
			g := grpc.NewServer(options...)
			watcher.Go(func() {
				<-signalled.Done()
				g.Stop()
			})
			return g
		},
		Logger: hclog.NewNullLogger(),
	})

	s.awaitCalls(shutdownTimeout)
	return nil
}

// awaitCalls refuses new calls, and waits for the running ones, but not longer than the limit.
func (s *server) awaitCalls(limit time.Duration) {
	done := make(chan struct{})
	// A Configure that hangs holds the lock, and a call may never end. In both cases, this goroutine ends with
	// the process.
	go func() {
		s.mu.Lock()
		s.ending = true
		s.mu.Unlock()
		s.calls.Wait()
		close(done)
	}()

	select {
	case <-done:
	case <-time.After(limit):
	}
}

// forgetHandshake removes the variables of the handshake from the environment. Otherwise a program that the
// provider starts could behave like a provider.
func forgetHandshake() {
	for _, word := range os.Environ() {
		name, _, _ := strings.Cut(word, "=")
		if name == cookie || strings.HasPrefix(name, "PLUGIN_") {
			_ = os.Unsetenv(name) // never fails on Linux
		}
	}
}

// grpcPlugin is the service in the form that go-plugin expects. Its server is nil in the client.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the service.
func (p *grpcPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	protocol.RegisterProviderServer(s, p.server)
	return nil
}

// GRPCClient returns a client of the service.
func (p *grpcPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return protocol.NewProviderClient(c), nil
}
