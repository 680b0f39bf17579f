package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// loginMethods are the ways to log in to a host.
type loginMethods struct {
	methods []ssh.AuthMethod
	tried   []string // descriptions of the methods for messages, without secrets
	close   func()   // closes the connection to the ssh-agent; never nil
}

// gatherLogin returns the ways to log in to a host: with the configured key or, without a configured key, with
// the keys of the ssh-agent and of the user; and with the configured password. The ssh-agent must answer within
// agentTimeout, and before ctx is done.
func (p *Provider) gatherLogin(ctx context.Context, t target) (loginMethods, error) {
	l := loginMethods{close: func() {}}
	signers, err := p.readIdentities(&l)
	if err != nil {
		return l, err
	}

	var held agent.ExtendedAgent
	if p.env.Config["identity"] == "" {
		held = l.dialAgent(ctx)
	}
	if len(signers) > 0 || held != nil {
		l.methods = append(l.methods, ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			if held == nil {
				return signers, nil
			}
			more, err := held.Signers()
			if err != nil {
				// If the ssh-agent fails or hangs, the keys in files may still be accepted.
				return signers, nil
			}

			return slices.Concat(signers, more), nil
		}))
	}

	if err := p.addPassword(&l); err != nil {
		l.close()
		return l, err
	}
	if len(l.methods) == 0 {
		return l, withHints(
			fmt.Errorf("cannot log in to %q: no key and no password given", t),
			loginAdvice,
		)
	}

	return l, nil
}

const loginAdvice = "name a key with ssh.identity=FILE, start an ssh-agent, or name a file of mode 0600 with ssh.password-file=FILE"

// readIdentities reads the private keys, and adds their descriptions to l.tried. A configured key must be
// usable. Without one, it reads the usable keys in the user's ~/.ssh.
func (p *Provider) readIdentities(l *loginMethods) (signers []ssh.Signer, err error) {
	if named := p.env.Config["identity"]; named != "" {
		path, err := expandPath(named)
		if err != nil {
			return nil, err
		}
		signer, err := readIdentity(path)
		if err != nil {
			return nil, fmt.Errorf("cannot use ssh.identity: %w", err)
		}

		l.tried = append(l.tried, "the key of "+path)
		return []ssh.Signer{signer}, nil
	}

	for _, name := range []string{"id_ed25519", "id_ecdsa", "id_rsa"} {
		path, err := expandPath("~/.ssh/" + name)
		if err != nil {
			continue
		}

		if signer, err := readIdentity(path); err == nil {
			signers = append(signers, signer)
			l.tried = append(l.tried, "the key of "+path)
		}
	}

	return signers, nil
}

// readIdentity reads a private key from a file.
func readIdentity(path string) (ssh.Signer, error) {
	data, err := readPrivate(path)
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(data)

	var locked *ssh.PassphraseMissingError
	switch {
	case errors.As(err, &locked):
		return nil, withHints(fmt.Errorf("the key %q has a passphrase", path),
			"add the key to an ssh-agent: ssh-add "+path)
	case err != nil:
		return nil, fmt.Errorf("%q does not contain a private key: %w", path, err)
	}

	return signer, nil
}

// agentTimeout limits all requests to the ssh-agent. It is shorter than connectTimeout, so a hanging agent
// is not reported as a hanging host.
const agentTimeout = 10 * time.Second

// dialAgent connects to the ssh-agent. It returns nil if no ssh-agent is running. Otherwise it sets l.close,
// and adds the agent's keys to l.tried.
func (l *loginMethods) dialAgent(ctx context.Context) agent.ExtendedAgent {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil
	}

	limit := time.Now().Add(agentTimeout)
	conn, err := (&net.Dialer{Deadline: limit}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil
	}

	// This fails only if the connection is closed. In that case, the agent's keys are not used.
	_ = conn.SetDeadline(limit)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l.close = func() {
		stop()
		_ = conn.Close()
	}

	l.tried = append(l.tried, "the ssh-agent's keys")
	return agent.NewClient(conn)
}

// addPassword adds the configured password, if there is one, to the methods.
func (p *Provider) addPassword(l *loginMethods) error {
	named := p.env.Config["password-file"]
	if named == "" {
		return nil
	}

	path, err := expandPath(named)
	if err != nil {
		return err
	}
	data, err := readPrivate(path)
	if err != nil {
		return fmt.Errorf("cannot use ssh.password-file: %w", err)
	}

	password := string(bytes.TrimRight(data, "\r\n"))
	if password == "" {
		return fmt.Errorf("cannot use ssh.password-file: %q contains no password", path)
	}

	l.tried = append(l.tried, "the password of "+path)
	l.methods = append(l.methods, ssh.Password(password), ssh.KeyboardInteractive(
		func(_, _ string, questions []string, echos []bool) ([]string, error) {
			answers := make([]string, len(questions))
			for i := range questions {
				// A question whose answer is shown is not for a password.
				if !echos[i] {
					answers[i] = password
				}
			}

			return answers, nil
		}))

	return nil
}

// readPrivate reads a file. It returns an error if other users can read the file.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users have access to the file %[1]q; run: chmod 600 %[1]q", path)
	}

	return os.ReadFile(path)
}

// expandPath returns an absolute path unchanged, and replaces "~/" with the user's home directory. It
// returns an error for any other path.
func expandPath(path string) (string, error) {
	rest, own := strings.CutPrefix(path, "~/")
	if !own && filepath.IsAbs(path) {
		return path, nil
	}
	if !own {
		return "", fmt.Errorf("cannot use file %q: want an absolute path, or ~/FILE", path)
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find %q: %w", path, err)
	}

	return filepath.Join(home, rest), nil
}
