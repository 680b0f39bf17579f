package plugin

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	goplugin "github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"bijou/provision/provider/protocol"
)

// ErrByHand: the executable was not started by a provisioner.
var ErrByHand = errors.New("a provider is started by the provisioner, and says nothing to anybody else")

// shutdownTimeout bounds the calls that were cut off.
const shutdownTimeout = 10 * time.Second

// Serve makes this process a provider, until its client ends it or dies, or it is sent SIGTERM.
// main calls it once; it takes over stdout.
func Serve(create New) error {
	if os.Getenv(cookie) != cookieValue {
		return ErrByHand
	}
	stderr := os.Stderr
	s := &server{create: create, ready: func() {
		os.Stderr = stderr // go-plugin makes it a stream, in which last words would be lost
		forgetHandshake()
	}}
	// The kernel sends SIGTERM when the client dies.
	signalled, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
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

func (s *server) awaitCalls(limit time.Duration) {
	done := make(chan struct{})
	go func() { // ends with the process, at the latest
		s.refuseCalls()
		s.calls.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(limit):
	}
}

// What the provider starts must not take itself for a provider.
func forgetHandshake() {
	for _, word := range os.Environ() {
		name, _, _ := strings.Cut(word, "=")
		if name == cookie || strings.HasPrefix(name, "PLUGIN_") {
			_ = os.Unsetenv(name)
		}
	}
}

// grpcPlugin is the service as go-plugin wants it; server is nil in the client.
type grpcPlugin struct {
	goplugin.NetRPCUnsupportedPlugin
	server *server
}

// GRPCServer registers the service.
func (p *grpcPlugin) GRPCServer(_ *goplugin.GRPCBroker, s *grpc.Server) error {
	protocol.RegisterProviderServer(s, p.server)
	return nil
}

// GRPCClient makes the service's client.
func (p *grpcPlugin) GRPCClient(_ context.Context, _ *goplugin.GRPCBroker, c *grpc.ClientConn) (any, error) {
	return protocol.NewProviderClient(c), nil
}
