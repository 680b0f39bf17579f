package ssh

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"bijou/provision/provider"
	"bijou/state/backoff"
)

const (
	connectTimeout    = 15 * time.Second // to connect and log in
	keepaliveInterval = 5 * time.Second
	// keepaliveTimeout is how long a host may say nothing at all. What asks it waits
	// behind the binary that is being copied, on however slow a line.
	keepaliveTimeout = time.Minute
)

// conn is a login on a host. It ends when its context does.
type conn struct {
	target    target
	client    *ssh.Client
	cancel    context.CancelFunc
	keepalive sync.WaitGroup
}

func (c *conn) close() {
	c.cancel()
	_ = c.client.Close()
	c.keepalive.Wait()
}

// The host's key must be vouched for. An error that wraps provider.ErrTransient says that the host
// was not reached.
func (p *Provider) dial(ctx context.Context, t target) (*conn, error) {
	known, err := p.newHostKeyPolicy(t)
	if err != nil {
		return nil, err
	}
	l, err := p.gatherLogin(ctx, t)
	if err != nil {
		return nil, err
	}
	defer l.close()
	var refused error // the host's key, the first time
	for _, algorithms := range known.attempts {
		var client *ssh.Client
		client, err = p.connect(ctx, t, &ssh.ClientConfig{
			User: t.User, Auth: l.methods, HostKeyAlgorithms: algorithms, ClientVersion: "SSH-2.0-bijou",
			HostKeyCallback: func(name string, remote net.Addr, key ssh.PublicKey) error {
				verdict := known.check(name, remote, key)
				if verdict == nil {
					refused = nil
					return p.saveHostKey(t, key)
				}
				refused = cmp.Or(refused, verdict)
				return verdict
			},
		})
		if err == nil {
			return newConn(ctx, t, client), nil
		}
		if refused == nil && !strings.Contains(err.Error(), noCommonKeyText) || errors.Is(err, provider.ErrTransient) {
			break
		}
	}
	return nil, explainDial(t, l, cmp.Or(refused, err))
}

// The library has no error value for a host that has no key of that kind.
const noCommonKeyText = "no common algorithm for host key"

func explainDial(t target, l loginMethods, err error) error {
	switch {
	case strings.Contains(err.Error(), "unable to authenticate"):
		return withHints(fmt.Errorf("cannot log in to %q: the host takes none of: %s", t, strings.Join(l.tried, ", ")),
			"let the host take one of them (ssh-copy-id), or: "+loginAdvice)
	case strings.Contains(err.Error(), "no common algorithm"):
		return fmt.Errorf("cannot log in to %q: %w", t, err)
	}
	return err
}

func (p *Provider) connect(ctx context.Context, t target, config *ssh.ClientConfig) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	wire, err := p.dialContext(ctx, "tcp", t.address())
	if err != nil {
		return nil, unreachableError(t, err)
	}
	stop := context.AfterFunc(ctx, func() { _ = wire.Close() })
	defer stop()
	c, channels, requests, err := ssh.NewClientConn(wire, t.address(), config)
	if err != nil {
		_ = wire.Close()
		return nil, explainHandshake(ctx, t, err)
	}
	return ssh.NewClient(c, channels, requests), nil
}

func explainHandshake(ctx context.Context, t target, err error) error {
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return unreachableError(t, fmt.Errorf("it does not answer within %s", connectTimeout))
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "no common algorithm"):
		return err
	case errors.As(err, &network), strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "disconnect"):
		return unreachableError(t, err)
	}
	return fmt.Errorf("cannot log in to %q: %w", t, err)
}

// The host may be back: the error is transient.
func unreachableError(t target, err error) error {
	return fmt.Errorf("cannot reach host %q: %w: %w", t, err, provider.ErrTransient)
}

// The login ends with ctx, and when the host says nothing any more.
func newConn(ctx context.Context, t target, client *ssh.Client) *conn {
	ctx, end := context.WithCancel(ctx)
	c := &conn{target: t, client: client, cancel: end}
	c.keepalive.Go(func() {
		for sendKeepalive(ctx, client) == nil {
		}
		_ = client.Close()
	})
	return c
}

// It waits for keepaliveInterval first.
func sendKeepalive(ctx context.Context, client *ssh.Client) error {
	if err := backoff.Sleep(ctx, keepaliveInterval); err != nil {
		return err
	}
	silent := time.AfterFunc(keepaliveTimeout, func() { _ = client.Close() })
	defer silent.Stop()
	defer context.AfterFunc(ctx, func() { _ = client.Close() })()
	_, _, err := client.SendRequest("keepalive@openssh.com", true, nil)
	return err
}
