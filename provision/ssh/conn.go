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
	// keepaliveTimeout is how long a host can take to answer a keepalive. It is long, since a keepalive may
	// wait behind the data of a binary that is being copied over a slow connection.
	keepaliveTimeout = time.Minute
)

// conn is an SSH connection to a host. It ends when its context is done.
type conn struct {
	target    target
	client    *ssh.Client
	cancel    context.CancelFunc
	keepalive sync.WaitGroup
}

func (c *conn) close() {
	c.cancel()
	// This fails if the keepalive has already closed the broken connection.
	_ = c.client.Close()
	c.keepalive.Wait()
}

// dial logs in to a host, whose key must be known. Its error wraps [provider.ErrTransient] if it did not
// reach the host.
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

	// refused is the first error about a key of the host. It is reset once a key was accepted, since any
	// later error concerns the login.
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

// noCommonKeyText is part of the library's error for a host without a key for the requested algorithms. The
// library has no error value for this case.
const noCommonKeyText = "no common algorithm for host key"

// explainDial returns the error of a login with hints.
func explainDial(t target, l loginMethods, err error) error {
	switch {
	case strings.Contains(err.Error(), "unable to authenticate"):
		return withHints(fmt.Errorf("cannot log in to %q: the host accepted none of these logins: %s",
			t, strings.Join(l.tried, ", ")),
			"configure the host to accept one of them (ssh-copy-id), or: "+loginAdvice)
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

// explainHandshake returns the error of a handshake. It is transient if the host does not answer.
func explainHandshake(ctx context.Context, t target, err error) error {
	var network net.Error
	switch {
	case ctx.Err() != nil:
		return unreachableError(t, fmt.Errorf("the host does not answer within %s", connectTimeout))
	case strings.Contains(err.Error(), "unable to authenticate"), strings.Contains(err.Error(), "no common algorithm"):
		return err
	case errors.As(err, &network), strings.Contains(err.Error(), "EOF"), strings.Contains(err.Error(), "disconnect"):
		return unreachableError(t, err)
	}

	return fmt.Errorf("cannot log in to %q: %w", t, err)
}

// unreachableError returns an error for a host that does not answer. It is transient, since the host may come
// back.
func unreachableError(t target, err error) error {
	return fmt.Errorf("cannot reach host %q: %w: %w", t, err, provider.ErrTransient)
}

// newConn returns a conn for a client. It closes the client when ctx is done, or when the host no longer
// answers.
func newConn(ctx context.Context, t target, client *ssh.Client) *conn {
	ctx, end := context.WithCancel(ctx)
	c := &conn{target: t, client: client, cancel: end}
	c.keepalive.Go(func() {
		for sendKeepalive(ctx, client) == nil {
		}
		// The host no longer answers, or the connection is no longer used. This ends all calls that still wait.
		_ = client.Close()
	})

	return c
}

// sendKeepalive waits for keepaliveInterval, and then requests an answer from the host. It closes the client
// if no answer comes within keepaliveTimeout.
func sendKeepalive(ctx context.Context, client *ssh.Client) error {
	if err := backoff.Sleep(ctx, keepaliveInterval); err != nil {
		return err
	}

	// Only closing the client ends a request that is not answered.
	closeClient := func() { _ = client.Close() }
	silent := time.AfterFunc(keepaliveTimeout, closeClient)
	defer silent.Stop()
	stop := context.AfterFunc(ctx, closeClient)
	defer stop()

	const wantReply = true
	_, _, err := client.SendRequest("keepalive@openssh.com", wantReply, nil)
	return err
}

// scripts run on hosts, with /bin/sh, as root. Every user of a host can see their arguments, so secrets are
// passed on stdin.
//
//go:embed scripts/*.sh
var scripts embed.FS

// asRoot runs the script as root. It uses sudo if the user is not root.
const asRoot = `[ "$(id -u)" = 0 ] && exec sh -c "$0" bijou "$@"; exec sudo -n -- sh -c "$0" bijou "$@"`

// scriptError is the error of a script that has failed.
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

// noStdin is given to run for a script that reads nothing.
var noStdin io.Reader

// run runs a script as root. It returns a scriptError if the script fails, and a transient error if the
// connection to the host breaks.
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
		return "", withHints(fmt.Errorf("user %q is not root on host %q, and cannot become root: %w",
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

// boundedBuffer keeps the first maxOutput bytes, since a host could send endless output.
type boundedBuffer []byte

const maxOutput = 16 << 10

// Write keeps the first maxOutput bytes, and drops the rest.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), maxOutput-len(*b))]...)
	return len(data), nil
}

// stripUnprintable removes unprintable characters from a host's output, so that it cannot control a
// terminal.
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

// withHints adds hints to an error. A hint is advice for the operator.
func withHints(err error, hints ...string) error {
	for _, h := range hints {
		err = fmt.Errorf("%w\nhint: %s", err, h)
	}
	return err
}
