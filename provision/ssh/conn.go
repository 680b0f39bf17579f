package ssh

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"
	"unicode"

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

// dial logs in to a host, whose key must be known. It returns an error that wraps [provider.ErrTransient]
// if it did not reach the host.
func (p *Provider) dial(ctx context.Context, t target) (*conn, error) {
	policy, err := p.newHostKeyPolicy(t)
	if err != nil {
		return nil, err
	}

	l, err := p.gatherLogin(ctx, t)
	if err != nil {
		return nil, err
	}
	defer l.close()

	// refused is the first verdict against a key of the host. It is nil again once a key was accepted, since what
	// fails after that is the login.
	var refused error
	checkKey := func(name string, remote net.Addr, key ssh.PublicKey) error {
		if verdict := policy.check(name, remote, key); verdict != nil {
			refused = cmp.Or(refused, verdict)
			return verdict
		}

		refused = nil
		return p.saveHostKey(t, key)
	}

	for _, algorithms := range policy.attempts {
		var client *ssh.Client
		client, err = p.connect(ctx, t, &ssh.ClientConfig{
			User:              t.User,
			Auth:              l.methods,
			HostKeyAlgorithms: algorithms,
			HostKeyCallback:   checkKey,
			ClientVersion:     "SSH-2.0-bijou",
		})
		if err == nil {
			return newConn(ctx, t, client), nil
		}

		otherKeyMayDo := refused != nil || strings.Contains(err.Error(), noCommonKeyText)
		if !otherKeyMayDo || errors.Is(err, provider.ErrTransient) {
			break
		}
	}

	return nil, explainDial(t, l, cmp.Or(refused, err))
}

// The library has no error value for a host that has no key of that kind.
const noCommonKeyText = "no common algorithm for host key"

// explainDial returns the error of a login with advice.
func explainDial(t target, l loginMethods, err error) error {
	switch {
	case strings.Contains(err.Error(), "unable to authenticate"):
		return withHints(fmt.Errorf("cannot log in to %q: the host accepts none of: %s",
			t, strings.Join(l.tried, ", ")),
			"make the host accept one of them (ssh-copy-id), or: "+loginAdvice)
	case strings.Contains(err.Error(), "no common algorithm"):
		return fmt.Errorf("cannot log in to %q: %w", t, err)
	}

	return err
}

// connect opens an SSH connection.
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

// explainHandshake returns the error of a handshake. A host that does not answer is a transient error.
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

// unreachableError returns an error for a host that does not answer. It is transient, since the host can be
// back.
func unreachableError(t target, err error) error {
	return fmt.Errorf("cannot reach host %q: %w: %w", t, err, provider.ErrTransient)
}

// newConn returns the connection of a login. It closes the login when ctx is done, or when the host no
// longer answers.
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

// sendKeepalive waits for keepaliveInterval, and then waits for an answer of the host. It closes the client
// if none comes within keepaliveTimeout.
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

// scripts are run on hosts, by /bin/sh, as root. Nothing secret is among their
// arguments, which everybody on the host can see: that goes by stdin.
//
//go:embed scripts/*.sh
var scripts embed.FS

// asRoot becomes root by sudo where the user is not root, and runs the script.
const asRoot = `[ "$(id -u)" = 0 ] && exec sh -c "$0" bijou "$@"; exec sudo -n -- sh -c "$0" bijou "$@"`

// scriptError is a script that ended with an exit code.
type scriptError struct {
	code   int
	stderr string
}

func (e scriptError) Error() string {
	if e.stderr == "" {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.stderr
}

// run runs a script as root. The error is a scriptError where the script failed, and transient
// where the host went away.
func (c *conn) run(ctx context.Context, script string, stdin io.Reader, args ...string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}

	words := []string{"sh", "-c", asRoot, string(text)}
	if c.target.User == "root" {
		words = []string{"sh", "-c", string(text), "bijou"}
	}
	out, err := c.execCommand(ctx, quoteWords(append(words, args...)), stdin)

	var code scriptError
	switch {
	case err == nil:
		return out, nil
	case !errors.As(err, &code):
		return "", unreachableError(c.target, err)
	case strings.HasPrefix(code.stderr, "sudo: "), strings.Contains(code.stderr, "sudo: not found"):
		return "", withHints(fmt.Errorf("user %q is not root on host %q, and cannot become it: %w",
			c.target.User, c.target, err),
			"let that user use sudo without a password, or name root@"+c.target.Host)
	}

	return "", err
}

// execCommand runs a command on the host, and returns its output.
func (c *conn) execCommand(ctx context.Context, command string, stdin io.Reader) (string, error) {
	session, err := c.client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { _ = c.client.Close() })()

	var stdout, stderr boundedBuffer
	session.Stdin = stdin
	session.Stdout = &stdout
	session.Stderr = &stderr
	err = session.Run(command)

	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return "", scriptError{exit.ExitStatus(), stripUnprintable(string(stderr))}
	}

	return string(stdout), err
}

// boundedBuffer keeps the first maxOutput bytes: a host is not trusted to end.
type boundedBuffer []byte

const maxOutput = 16 << 10

// Write keeps the first bytes, and drops the rest.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), maxOutput-len(*b))]...)
	return len(data), nil
}

// stripUnprintable removes unprintable characters from a host's answer, so that it cannot steer a terminal.
func stripUnprintable(said string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, said))
}

func quoteWords(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// withHints adds hints to an error, each of which tells the operator how to go on.
func withHints(err error, hints ...string) error {
	for _, h := range hints {
		err = fmt.Errorf("%w\nhint: %s", err, h)
	}
	return err
}
