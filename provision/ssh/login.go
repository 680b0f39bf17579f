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

// gatherLogin returns the ways to log in to a host: the configured key, and the configured password. If no key
// is configured, it uses the keys in the user's ~/.ssh and those of the ssh-agent instead. The ssh-agent must
// answer within agentTimeout, and before ctx is done. The caller must call close of the result, unless there
// is an error. gatherLogin returns an error if a configured key or password cannot be used, or if there is no
// way to log in.
func (p *Provider) gatherLogin(ctx context.Context, t target) (loginMethods, error) {
	l := loginMethods{close: func() {}}
	fileKeys, err := p.readIdentities(&l)
	if err != nil {
		return l, err
	}

	var sshAgent agent.ExtendedAgent
	if p.env.Config["identity"] == "" {
		sshAgent = l.dialAgent(ctx)
	}

	if len(fileKeys) > 0 || sshAgent != nil {
		// The library calls this function during the login. It lists all keys, since the library uses only the
		// first method for keys.
		listKeys := func() ([]ssh.Signer, error) {
			if sshAgent == nil {
				return fileKeys, nil
			}
			agentKeys, err := sshAgent.Signers()
			if err != nil {
				// If the ssh-agent fails or hangs, the keys in files may still be accepted.
				return fileKeys, nil
			}

			return slices.Concat(fileKeys, agentKeys), nil
		}
		l.methods = append(l.methods, ssh.PublicKeysCallback(listKeys))
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

// loginAdvice is the hint of errors about a login.
const loginAdvice = "name a key with ssh.identity=FILE, start an ssh-agent, or name a file of mode 0600 with ssh.password-file=FILE"

// readIdentities reads the configured private key or, if none is configured, the usable keys in the user's
// ~/.ssh. It adds their descriptions to l.tried. It returns an error if the configured key cannot be used.
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

// readIdentity reads a private key from a file. It returns an error if the file cannot be read or has no
// private key, if the key has a passphrase, or if other users have access to the file.
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

// dialAgent connects to the ssh-agent. It returns nil if it cannot connect. Otherwise it sets l.close, and
// adds a description of the agent's keys to l.tried.
func (l *loginMethods) dialAgent(ctx context.Context) agent.ExtendedAgent {
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil
	}

	deadline := time.Now().Add(agentTimeout)
	conn, err := (&net.Dialer{Deadline: deadline}).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil
	}

	// SetDeadline fails only if the connection is closed. In that case, the agent's keys are not used.
	_ = conn.SetDeadline(deadline)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	l.close = func() {
		stop()
		_ = conn.Close()
	}

	l.tried = append(l.tried, "the ssh-agent's keys")
	return agent.NewClient(conn)
}

// addPassword adds the configured password to l.methods, as a password and as the answer to hidden questions.
// It does nothing if none is configured. It returns an error if the password's file cannot be used.
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

// readPrivate reads a file. It returns an error if other users have any access to the file.
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
	pathInHome, isInHome := strings.CutPrefix(path, "~/")
	if !isInHome && filepath.IsAbs(path) {
		return path, nil
	}
	if !isInHome {
		return "", fmt.Errorf("cannot use file %q: want an absolute path, or ~/FILE", path)
	}

	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("cannot find %q: %w", path, err)
	}

	return filepath.Join(home, pathInHome), nil
}
