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

// scripts are what is run on hosts, by /bin/sh, as root. Nothing secret is among
// their arguments, which everybody on the host can see: that goes by stdin.
//
//go:embed scripts/*.sh
var scripts embed.FS

// asRoot becomes root by sudo where the user is not root, and runs the script.
const asRoot = `[ "$(id -u)" = 0 ] && exec sh -c "$0" bijou "$@"; exec sudo -n -- sh -c "$0" bijou "$@"`

// failed is a script that ended with an exit code.
type failed struct {
	code int
	said string // on stderr
}

func (f failed) Error() string {
	if f.said == "" {
		return fmt.Sprintf("exit code %d", f.code)
	}
	return f.said
}

// run runs a script on the host as root and returns what it prints. The error is
// a failed where the script failed, and transient where the host went away.
func (c *conn) run(ctx context.Context, script string, stdin io.Reader, args ...string) (string, error) {
	text, err := scripts.ReadFile("scripts/" + script + ".sh")
	if err != nil {
		return "", fmt.Errorf("internal error: %w", err)
	}
	words := []string{"sh", "-c", asRoot, string(text)}
	if c.target.User == "root" {
		words = []string{"sh", "-c", string(text), "bijou"}
	}
	out, err := c.exec(ctx, quote(append(words, args...)), stdin)
	var code failed
	switch {
	case err == nil:
		return out, nil
	case !errors.As(err, &code):
		return "", unreached(c.target, err)
	case strings.HasPrefix(code.said, "sudo: "), strings.Contains(code.said, "sudo: not found"):
		return "", advise(fmt.Errorf("user %q is not root on host %q, and cannot become it: %w", c.target.User, c.target, err),
			"let that user use sudo without a password, or name root@"+c.target.Host)
	}
	return "", err
}

// exec runs a command on the host.
func (c *conn) exec(ctx context.Context, command string, stdin io.Reader) (string, error) {
	session, err := c.client.NewSession()
	if err != nil {
		return "", err
	}
	defer session.Close()
	defer context.AfterFunc(ctx, func() { _ = c.client.Close() })()
	var stdout, stderr bounded
	session.Stdin, session.Stdout, session.Stderr = stdin, &stdout, &stderr
	err = session.Run(command)
	var exit *ssh.ExitError
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case errors.As(err, &exit):
		return "", failed{exit.ExitStatus(), readable(string(stderr))}
	}
	return string(stdout), err
}

// bounded is what a host has said, as far as it is of interest: a host is not
// trusted to end.
type bounded []byte

const atMost = 16 << 10

// Write keeps the first bytes.
func (b *bounded) Write(data []byte) (int, error) {
	*b = append(*b, data[:min(len(data), atMost-len(*b))]...)
	return len(data), nil
}

// readable is what a host has said in the form of a message: nothing of it can
// steer a terminal.
func readable(said string) string {
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if r == '\n' || unicode.IsPrint(r) {
			return r
		}
		return -1
	}, said))
}

// quote makes words one line of a POSIX shell.
func quote(words []string) string {
	var quoted []string
	for _, w := range words {
		quoted = append(quoted, "'"+strings.ReplaceAll(w, "'", `'\''`)+"'")
	}
	return strings.Join(quoted, " ")
}

// advise adds lines that say what to do.
func advise(err error, hints ...string) error {
	for _, h := range hints {
		err = fmt.Errorf("%w\nhint: %s", err, h)
	}
	return err
}
