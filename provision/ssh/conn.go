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

// close closes the connection, and waits until its keepalive has ended.
func (c *conn) close() {
	c.cancel()
	// This fails if the keepalive has already closed the broken connection.
	_ = c.client.Close()
	c.keepalive.Wait()
}

// dial logs in to a host whose key is trusted, and saves the key of a host with a fingerprint. The connection
// ends when ctx is done. dial returns an error that wraps [provider.ErrTransient] if it cannot reach the host,
// unless it has refused the last key that the host offered. In that case, the error is about the key.
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

	// keyErr is the first error about a key of the host. It is reset once a key is accepted, since any later
	// error is about the login.
	var keyErr error
	checkKey := func(name string, remote net.Addr, key ssh.PublicKey) error {
		if err := policy.check(name, remote, key); err != nil {
			keyErr = cmp.Or(keyErr, err)
			return err
		}

		keyErr = nil
		return p.saveHostKey(t, key)
	}

	// Each attempt accepts only its own algorithms of host keys. With a fingerprint, each of them makes the host
	// offer a different key.
	var connectErr error
	for _, algorithms := range policy.attempts {
		client, err := p.connect(ctx, t, &ssh.ClientConfig{
			User:              t.User,
			Auth:              l.methods,
			HostKeyAlgorithms: algorithms,
			HostKeyCallback:   checkKey,
			ClientVersion:     "SSH-2.0-bijou",
		})
		if err == nil {
			return newConn(ctx, t, client), nil
		}

		connectErr = err
		if errors.Is(err, provider.ErrTransient) {
			break
		}
		// A host can have several keys. Another one may be accepted.
		isAboutKey := keyErr != nil || strings.Contains(err.Error(), noCommonKeyText)
		if !isAboutKey {
			break
		}
	}

	return nil, explainDial(t, l, cmp.Or(keyErr, connectErr))
}

// noCommonKeyText is part of the library's error for a host without a key for the requested algorithms. The
// library has no error value for this case.
const noCommonKeyText = "no common algorithm for host key"

// explainDial returns the error of a login with a hint, if the host has accepted none of the login's methods. It
// adds the host's name to an error about algorithms, and returns all other errors unchanged. It reads the
// library's text, since the library has no error values.
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

// connect opens an SSH connection and logs in, within connectTimeout. It returns a transient error if it
// cannot reach the host, if the connection breaks, or if ctx is done.
func (p *Provider) connect(ctx context.Context, t target, config *ssh.ClientConfig) (*ssh.Client, error) {
	ctx, cancel := context.WithTimeout(ctx, connectTimeout)
	defer cancel()
	netConn, err := p.dialContext(ctx, "tcp", t.address())
	if err != nil {
		return nil, unreachableError(t, err)
	}

	// Only closing the connection ends a handshake that hangs.
	stopWatching := context.AfterFunc(ctx, func() { _ = netConn.Close() })
	defer stopWatching()
	c, channels, requests, err := ssh.NewClientConn(netConn, t.address(), config)
	if err != nil {
		_ = netConn.Close()
		return nil, explainHandshake(ctx, t, err)
	}

	return ssh.NewClient(c, channels, requests), nil
}

// explainHandshake returns the error of connect for err, the library's error about the handshake and login. It
// returns a transient error if ctx is done or the connection broke. It returns errors that explainDial
// recognizes unchanged.
func explainHandshake(ctx context.Context, t target, err error) error {
	if ctx.Err() != nil {
		return unreachableError(t, fmt.Errorf("the host does not answer within %s", connectTimeout))
	}

	text := err.Error()
	isForExplainDial := strings.Contains(text, "unable to authenticate") || strings.Contains(text, "no common algorithm")
	if isForExplainDial {
		return err
	}

	var netErr net.Error
	connectionBroke := errors.As(err, &netErr) || strings.Contains(text, "EOF") || strings.Contains(text, "disconnect")
	if connectionBroke {
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
			// sendKeepalive itself waits before each request.
		}
		// The host no longer answers, or ctx is done. Closing the client ends all calls that still wait.
		_ = client.Close()
	})

	return c
}

// sendKeepalive waits for keepaliveInterval, and then requests an answer from the host. It returns nil if the
// host has answered. If no answer comes within keepaliveTimeout, or ctx is done during the request, it closes
// the client and returns an error.
func sendKeepalive(ctx context.Context, client *ssh.Client) error {
	if err := backoff.Sleep(ctx, keepaliveInterval); err != nil {
		return err
	}

	// Only closing the client ends a request that is not answered.
	closeClient := func() { _ = client.Close() }
	timer := time.AfterFunc(keepaliveTimeout, closeClient)
	defer timer.Stop()
	stopWatching := context.AfterFunc(ctx, closeClient)
	defer stopWatching()

	const wantReply = true
	_, _, err := client.SendRequest("keepalive@openssh.com", wantReply, nil)
	return err
}

// scripts run on hosts, with /bin/sh, as root. Every user of a host can see their arguments, so secrets are
// passed on stdin.
//
//go:embed scripts/*.sh
var scripts embed.FS

// asRoot is a shell command that runs the script $0 as root, with the arguments $@. It uses sudo if the user is
// not root.
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

// run runs the file scripts/SCRIPT.sh on the host as root, and returns its stdout. It returns an error that
// wraps a scriptError if the script or sudo fails. It returns a transient error if the connection to the host
// breaks or ctx is done.
func (c *conn) run(ctx context.Context, script string, stdin io.Reader, args ...string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}

	// The word after the shell's command becomes $0, which asRoot runs as the script.
	words := []string{"sh", "-c", asRoot, string(text)}
	if c.target.User == "root" {
		words = []string{"sh", "-c", string(text), "bijou"}
	}
	out, err := c.execCommand(ctx, quoteWords(append(words, args...)), stdin)
	if err == nil {
		return out, nil
	}

	var scriptErr scriptError
	if !errors.As(err, &scriptErr) {
		return "", unreachableError(c.target, err)
	}

	sudoFailed := strings.HasPrefix(scriptErr.stderr, "sudo: ") || strings.Contains(scriptErr.stderr, "sudo: not found")
	if sudoFailed {
		return "", withHints(fmt.Errorf("user %q is not root on host %q, and cannot become root: %w",
			c.target.User, c.target, err),
			"let that user use sudo without a password, or name root@"+c.target.Host)
	}

	return "", err
}

// execCommand runs a command on the host, and returns the first maxOutput bytes of its stdout. It returns a
// scriptError if the host reports that the command has failed. The end of ctx closes the connection.
func (c *conn) execCommand(ctx context.Context, command string, stdin io.Reader) (string, error) {
	session, err := c.client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()

	// Only closing the connection ends a command that hangs.
	stopWatching := context.AfterFunc(ctx, func() { _ = c.client.Close() })
	defer stopWatching()

	var stdout, stderr boundedBuffer
	session.Stdin = stdin
	session.Stdout = &stdout
	session.Stderr = &stderr
	err = session.Run(command)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}

	var exitErr *ssh.ExitError
	if errors.As(err, &exitErr) {
		return "", scriptError{exitErr.ExitStatus(), stripUnprintable(string(stderr))}
	}

	return string(stdout), err
}

// boundedBuffer keeps the first maxOutput bytes, since a host could send endless output.
type boundedBuffer []byte

// maxOutput limits the output of a command that is kept, in bytes.
const maxOutput = 16 << 10

// Write keeps the first maxOutput bytes, and drops the rest.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), maxOutput-len(*b))]...)
	return len(data), nil
}

// stripUnprintable removes unprintable characters from a host's output, except newlines. Otherwise the output
// could control the operator's terminal. It also removes white space at both ends.
func stripUnprintable(output string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, output))
}

// quoteWords returns a command line for a shell, in which each word is quoted.
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
