package ssh

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"golang.org/x/crypto/ssh"
)

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
		return "", withHints(fmt.Errorf("user %q is not root on host %q, and cannot become it: %w", c.target.User, c.target, err),
			"let that user use sudo without a password, or name root@"+c.target.Host)
	}
	return "", err
}

func (c *conn) execCommand(ctx context.Context, command string, stdin io.Reader) (string, error) {
	session, err := c.client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { _ = c.client.Close() })()
	var stdout, stderr boundedBuffer
	session.Stdin, session.Stdout, session.Stderr = stdin, &stdout, &stderr
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

// Write keeps the first bytes.
func (b *boundedBuffer) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), maxOutput-len(*b))]...)
	return len(data), nil
}

// Nothing that a host says may steer a terminal.
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

// Each hint says what to do.
func withHints(err error, hints ...string) error {
	for _, h := range hints {
		err = fmt.Errorf("%w\nhint: %s", err, h)
	}
	return err
}
