// Package plugin runs providers as separate processes. [Client] is a provider that starts an executable and
// forwards calls to it. Such an executable calls [Serve].
//
// The package contains no provider, does not use the state, and makes no decisions about machines.
// docs/reference/providers.md describes its protocol for providers in other languages.
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

// Options are the settings of a Client.
type Options struct {
	Name string // the name of the provider
	// Find returns the path of the executable with that SHA-256 digest. If the digest is empty, any
	// executable matches. It is called before each start.
	Find func(sha256 string) (string, error)
	// Wanted describes the wanted process. It is called before each call. If its result has changed, a new
	// process is started, and the old process ends after its last call.
	Wanted func(ctx context.Context) (Wanted, error)
	// Demand returns whether there can be instances. It is called before each call of Instances. nil means
	// that it always returns Present.
	Demand func(ctx context.Context) (Demand, error)
	// Sockets returns a directory for a process's socket, which only the directory's owner can access. It
	// creates the directory if necessary. It is called before each start.
	Sockets func() (string, error)
	Log     *slog.Logger // nil for slog.Default()
	// CallTimeout limits the start of the process, and each call of Configure, Capabilities and Instances.
	// 0 means half a minute.
	CallTimeout time.Duration
}

// Wanted describes a process. If two Wanted are equal, the same process serves both.
type Wanted struct {
	// SHA256 is the digest of the executable in hexadecimal, or empty for any executable.
	SHA256      string
	Environment provider.Environment
}

// Demand says whether there can be instances.
type Demand string

// The values of Demand.
const (
	Never   Demand = "never"   // there never was a machine, so no instance can exist
	Past    Demand = "past"    // there is no machine, but there was at least one
	Present Demand = "present" // there are machines
)

// Client is a provider that forwards calls to an executable. It starts the executable for the first call,
// and again if it has ended. If the executable crashes during a call, the error wraps
// provider.ErrTransient.
type Client struct {
	options    Options
	mu         chan struct{}   // a mutex whose waiters can be cancelled
	closing    context.Context // done once the client is closed
	close      context.CancelFunc
	knownEmpty bool     // Instances has returned none, and there have been no calls since then
	current    *session // nil if no process was started
	backoff    restartBackoff
	retiring   sync.WaitGroup // the sessions that end after their last call
}

// NewClient returns the provider, without starting its process. The caller must call Close.
func NewClient(o Options) *Client {
	if o.Log == nil {
		o.Log = slog.Default()
	}

	o.Log = o.Log.With("provider", o.Name)
	if o.CallTimeout == 0 {
		// This is less than the provisioner's timeout, so that a hanging process is killed.
		o.CallTimeout = 30 * time.Second
	}
	if o.Demand == nil {
		o.Demand = func(context.Context) (Demand, error) { return Present, nil }
	}
	c := &Client{options: o, mu: make(chan struct{}, 1)}
	c.closing, c.close = context.WithCancel(context.Background())
	return c
}

// Capabilities returns the capabilities that the process reports.
func (c *Client) Capabilities(ctx context.Context) (all provider.Capabilities, err error) {
	err = c.callProvider(ctx, c.options.CallTimeout, func(ctx context.Context, p protocol.ProviderClient) error {
		r, err := p.Capabilities(ctx, &protocol.CapabilitiesRequest{})
		all = provider.Capabilities{Name: r.GetName(), Isolated: r.GetIsolated(), Remote: r.GetRemote()}
		return err
	})
	return all, err
}

// Start makes the process start an instance. If the process ends during the call, the error is transient, and
// the caller must repeat the call with the same token.
func (c *Client) Start(ctx context.Context, spec provider.Spec, boot io.Writer) (i provider.Instance, err error) {
	const timeout = 0 // a start can take long, so only ctx limits it
	err = c.callProvider(ctx, timeout, func(ctx context.Context, p protocol.ProviderClient) (err error) {
		i, err = receiveStart(ctx, p, spec, boot)
		return err
	})
	return i, err
}

// receiveStart calls Start, writes each line of the instance's output to boot, and returns the instance.
func receiveStart(
	ctx context.Context,
	p protocol.ProviderClient,
	spec provider.Spec,
	boot io.Writer,
) (provider.Instance, error) {
	ctx, cancel := context.WithCancel(ctx)
	// This also ends a stream that was not read to its end.
	defer cancel()
	stream, err := p.Start(ctx, specToProto(spec))
	if err != nil {
		return provider.Instance{}, err
	}

	for {
		r, err := stream.Recv()
		switch {
		case errors.Is(err, io.EOF):
			return provider.Instance{}, errors.New("the provider's answer to a start request has no instance")
		case err != nil:
			return provider.Instance{}, err
		case r.GetInstance() != nil:
			return instanceFromProto(r.GetInstance()), nil
		}

		if _, err := fmt.Fprintln(boot, r.GetBoot()); err != nil {
			return provider.Instance{}, fmt.Errorf("cannot write the instance's output: %w", err)
		}
	}
}

// Stop makes the process stop an instance.
func (c *Client) Stop(ctx context.Context, instance string) error {
	const timeout = 0 // a stop can take long, so only ctx limits it
	return c.callProvider(ctx, timeout, func(ctx context.Context, p protocol.ProviderClient) error {
		_, err := p.Stop(ctx, &protocol.StopRequest{Instance: toUTF8(instance)})
		return err
	})
}

// Instances returns the instances that the process lists. If no instance can exist, it returns none and does
// not start the process. If there are no machines any more, and the process lists no instances, it ends the
// process.
func (c *Client) Instances(ctx context.Context) (instances []provider.Instance, err error) {
	demand, err := c.options.Demand(ctx)
	if err != nil {
		return nil, err
	}
	idle, err := c.isIdle(ctx, demand)
	if err != nil {
		return nil, err
	}
	if idle {
		return nil, nil
	}

	err = c.callProvider(ctx, c.options.CallTimeout, func(ctx context.Context, p protocol.ProviderClient) error {
		r, err := p.Instances(ctx, &protocol.InstancesRequest{})
		if err != nil {
			return err
		}

		for _, i := range r.GetInstances() {
			instances = append(instances, instanceFromProto(i))
		}
		return nil
	})
	if err != nil {
		return instances, err
	}
	if demand == Past && len(instances) == 0 {
		return instances, c.noteEmpty(ctx) // ends the process
	}

	return instances, nil
}

// Close ends the process and all calls. It returns when no process is left. Later calls return an error.
func (c *Client) Close() {
	// Unlike lock, this always succeeds.
	c.mu <- struct{}{}
	c.close() // ends all calls, and makes lock fail from now on
	if s := c.current; s != nil {
		c.current = nil
		s.close()
	}

	c.unlock()
	// Sessions that were retired earlier can still be ending.
	c.retiring.Wait()
}

// service is the name of the provider's service in go-plugin.
const service = "provider"

// cookie is the environment variable by which an executable recognizes that the provisioner has started it,
// and not a person. Its value, cookieValue, is the name of the protocol.
const (
	cookie      = "BIJOU_PROVIDER"
	cookieValue = "bijou.provider.v1"
)

// handshake returns the settings of the handshake, which must be the same on both sides.
func handshake() goplugin.HandshakeConfig {
	return goplugin.HandshakeConfig{ProtocolVersion: 1, MagicCookieKey: cookie, MagicCookieValue: cookieValue}
}
