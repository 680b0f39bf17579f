// Package plugin runs providers as processes of their own: Client is a provider
// whose work an executable does, and such an executable calls Serve.
//
// It knows no provider and no state, and decides nothing about machines. It alone
// imports go-plugin; only multicall/providers imports it. docs/reference/providers.md describes what
// it speaks, for those who write providers in other languages.
package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	goplugin "github.com/hashicorp/go-plugin"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
)

// Options name the provider's executable, and for whom it runs.
type Options struct {
	Name string // the provider's
	// Find returns the path of the executable, if that has the sha256 (empty: any);
	// it is asked before each start.
	Find func(sha256 string) (string, error)
	// Wanted says what the process is to be; it is asked before each call. Where it
	// has changed a new process takes over, and the old one ends with its calls.
	Wanted func(ctx context.Context) (Wanted, error)
	// Demand says how much is asked of the provider; nil: Present.
	Demand func(ctx context.Context) (Demand, error)
	// Sockets makes the owner-only folder for a process's socket, unless it is there, as
	// before each process that begins.
	Sockets func() (string, error)
	Log     *slog.Logger // nil: slog.Default()
	// CallTimeout bounds the start of the process, and each of its calls of
	// Configure, Capabilities and Instances; 0: half a minute.
	CallTimeout time.Duration
}

// Wanted describes a process: for two that are equal one process will do.
type Wanted struct {
	// SHA256 is the executable's, in hexadecimal digits; empty: any.
	SHA256      string
	Environment provider.Environment
}

// Demand says how much is asked of a provider.
type Demand string

// What is asked of a provider.
const (
	Never   Demand = "never"   // no machine was ever made: there can be no instance
	Past    Demand = "past"    // there is no machine, but there were
	Present Demand = "present" // there are machines
)

// Client is a provider whose work an executable does. It starts the executable when there is
// something to ask, and again when it has ended; a crash is an error that wraps
// provider.ErrTransient.
type Client struct {
	options    Options
	mu         chan struct{}   // a mutex for which a wait ends with its context
	closing    context.Context // done once the client is closed
	close      context.CancelFunc
	knownEmpty bool     // there were no instances, and no machine since
	current    *session // nil: none
	backoff    restartBackoff
	retiring   sync.WaitGroup // sessions that end with their last call
}

// NewClient returns the provider; nothing is started yet. It must be closed.
func NewClient(o Options) *Client {
	if o.Log == nil {
		o.Log = slog.Default()
	}

	o.Log = o.Log.With("provider", o.Name)
	if o.CallTimeout == 0 {
		o.CallTimeout = 30 * time.Second // less than the provisioner's, so that what hangs is ended
	}
	if o.Demand == nil {
		o.Demand = func(context.Context) (Demand, error) { return Present, nil }
	}
	c := &Client{options: o, mu: make(chan struct{}, 1)}
	c.closing, c.close = context.WithCancel(context.Background())
	return c
}

// Capabilities asks the process.
func (c *Client) Capabilities(ctx context.Context) (all provider.Capabilities, err error) {
	err = c.callProvider(ctx, c.options.CallTimeout, func(ctx context.Context, p protocol.ProviderClient) error {
		r, err := p.Capabilities(ctx, &protocol.CapabilitiesRequest{})
		all = provider.Capabilities{Name: r.GetName(), Isolated: r.GetIsolated(), Remote: r.GetRemote()}
		return err
	})
	return all, err
}

// Start asks the process to start an instance. If the process ends meanwhile, the error is transient: repeat
// the call with the same token.
func (c *Client) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (i provider.Instance, err error) {
	err = c.callProvider(ctx, 0, func(ctx context.Context, p protocol.ProviderClient) (err error) {
		i, err = receiveStart(ctx, p, spec, boot)
		return err
	})
	return i, err
}

// receiveStart calls Start, writes the lines that the instance prints to boot, and returns the instance.
func receiveStart(
	ctx context.Context,
	p protocol.ProviderClient,
	spec provider.Spec,
	boot io.Writer,
) (provider.Instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // or else a stream that was left would stay
	stream, err := p.Start(ctx, specToProto(spec))
	if err != nil {
		return provider.Instance{}, err
	}

	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return provider.Instance{}, errors.New("it answered a start with no instance")
		case err != nil:
			return provider.Instance{}, err
		case r.GetInstance() != nil:
			return instanceFromProto(r.GetInstance()), nil
		}

		if _, err := fmt.Fprintln(boot, r.GetBoot()); err != nil {
			return provider.Instance{}, fmt.Errorf("cannot read the instance's output: %w", err)
		}
	}
}

// Stop asks the process to stop an instance.
func (c *Client) Stop(ctx context.Context, instance string) error {
	return c.callProvider(ctx, 0, func(ctx context.Context, p protocol.ProviderClient) error {
		_, err := p.Stop(ctx, &protocol.StopRequest{Instance: toUTF8(instance)})
		return err
	})
}

// Instances asks the process, unless there can be no instance: then it is not even started, and
// ends if it runs.
func (c *Client) Instances(ctx context.Context) (all []provider.Instance, err error) {
	demand, err := c.options.Demand(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := c.isIdle(ctx, demand)
	if err != nil || idle {
		return nil, err
	}

	err = c.callProvider(ctx, c.options.CallTimeout, func(ctx context.Context, p protocol.ProviderClient) error {
		r, err := p.Instances(ctx, &protocol.InstancesRequest{})
		if err != nil {
			return err
		}

		for _, i := range r.GetInstances() {
			all = append(all, instanceFromProto(i))
		}
		return nil
	})
	if err != nil {
		return all, err
	}
	if demand == Past && len(all) == 0 {
		return all, c.noteEmpty(ctx)
	}

	return all, nil
}

// Close ends the process, and with it all calls. It returns when no process is
// left; calls made later fail.
func (c *Client) Close() {
	c.mu <- struct{}{}
	c.close()
	if s := c.current; s != nil {
		c.current = nil
		s.close()
	}

	c.unlock()
	c.retiring.Wait()
}

// service is the provider's service in go-plugin's table.
const service = "provider"

// cookie is the environment variable that tells an executable that it was started
// as a provider, not by a human; its value is the protocol's name.
const (
	cookie      = "BIJOU_PROVIDER"
	cookieValue = "bijou.provider.v1"
)

// handshake returns the settings that both sides must share.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: cookie, MagicCookieValue: cookieValue}
}
