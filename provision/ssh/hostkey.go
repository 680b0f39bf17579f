package ssh

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// hostKeyPolicy decides which key of a host is accepted.
type hostKeyPolicy struct {
	check    ssh.HostKeyCallback
	attempts [][]string // the key algorithms to request from the host in each attempt
}

// newHostKeyPolicy returns the policy for the target's keys. If the target has a fingerprint, the key must
// match it. Otherwise the key must be in the file of known hosts.
func (p *Provider) newHostKeyPolicy(t target) (hostKeyPolicy, error) {
	if t.Fingerprint != "" {
		return hostKeyPolicy{check: pinFingerprint(t), attempts: keyFamilies()}, nil
	}
	file, err := p.knownHostsFile()
	if err != nil {
		return hostKeyPolicy{}, err
	}

	known, err := knownhosts.New(file)
	if errors.Is(err, fs.ErrNotExist) {
		known, err = knownhosts.New()
	}
	if err != nil {
		return hostKeyPolicy{}, fmt.Errorf("cannot read the known hosts: %w", err)
	}

	check := func(_ string, remote net.Addr, key ssh.PublicKey) error {
		return explainVerdict(t, file, key, known(t.address(), remote, key))
	}
	return hostKeyPolicy{check: check, attempts: [][]string{knownAlgorithms(t, known)}}, nil
}

func (p *Provider) knownHostsFile() (string, error) {
	return expandPath(cmp.Or(p.env.Config["known-hosts"], "~/.ssh/known_hosts"))
}

// keyFamilies returns the families of host keys, the best first. The provider tries each in turn, since a
// fingerprint does not show its family.
func keyFamilies() [][]string {
	return [][]string{
		{ssh.KeyAlgoED25519},
		{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	}
}

func pinFingerprint(t target) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if ssh.FingerprintSHA256(key) == t.Fingerprint {
			return nil
		}
		return changedKeyError(t, key, "the fingerprint given for it is "+t.Fingerprint)
	}
}

// knownAlgorithms returns the algorithms of the host's known keys, which the host must use. It returns nil
// if no key is known.
func knownAlgorithms(t target, known ssh.HostKeyCallback) (algorithms []string) {
	var mismatch *knownhosts.KeyError
	if !errors.As(known(t.address(), &net.TCPAddr{}, noKey{}), &mismatch) {
		return nil
	}

	for _, k := range mismatch.Want {
		offered := []string{k.Key.Type()}
		if k.Key.Type() == ssh.KeyAlgoRSA {
			offered = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}

		for _, a := range offered {
			if !slices.Contains(algorithms, a) {
				algorithms = append(algorithms, a)
			}
		}
	}

	return algorithms
}

// noKey is a key that no host can have.
type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("no key") }

// explainVerdict returns the error for the result of a known_hosts check of a host's key.
func explainVerdict(t target, file string, key ssh.PublicKey, verdict error) error {
	var mismatch *knownhosts.KeyError
	var revoked *knownhosts.RevokedError
	switch {
	case verdict == nil:
		return nil
	case errors.As(verdict, &revoked):
		return fmt.Errorf("THE KEY OF HOST %q IS REVOKED by %s:%d: %s %s; nothing was sent to it",
			t, file, revoked.Revoked.Line, key.Type(), ssh.FingerprintSHA256(key))
	case errors.As(verdict, &mismatch) && len(mismatch.Want) > 0:
		return changedKeyError(t, key, fmt.Sprintf("%s:%d has a different key", file, mismatch.Want[0].Line))
	case errors.As(verdict, &mismatch):
		return unknownKeyError(t, key, file)
	}

	return fmt.Errorf("cannot check the key of host %q: %w", t, verdict)
}

// unknownKeyError returns the error for an unknown key, with hints on how to confirm the key.
func unknownKeyError(t target, key ssh.PublicKey, file string) error {
	fingerprint := ssh.FingerprintSHA256(key)
	kind := cmp.Or(map[string]string{ssh.KeyAlgoED25519: "ed25519", ssh.KeyAlgoRSA: "rsa"}[key.Type()], "ecdsa")
	return withHints(fmt.Errorf("cannot trust host %q: its key is unknown, %s %s",
		t, key.Type(), fingerprint),
		"compare the key at the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_"+kind+"_key.pub",
		fmt.Sprintf(
			"if the key is the same, confirm it with juju add-machine 'ssh:%s#%s', with that fingerprint in ssh.pool, or with the host's key in %s",
			t, fingerprint, file,
		))
}

func changedKeyError(t target, key ssh.PublicKey, want string) error {
	return withHints(fmt.Errorf("HOST %q HAS A DIFFERENT KEY THAN EXPECTED: %s %s, but %s; an attack can cause this, so nothing was sent to the host",
		t, key.Type(), ssh.FingerprintSHA256(key), want),
		"if the host was reinstalled: check its new fingerprint at its own console, then replace the old key (ssh-keygen -R, or the pool's fingerprint)")
}

// saveHostKey saves the key of a host with a fingerprint, so that juju ssh can also check the key.
func (p *Provider) saveHostKey(t target, key ssh.PublicKey) error {
	if t.Fingerprint == "" {
		return nil
	}

	line := knownhosts.Line([]string{t.address()}, key) + "\n"
	path := p.keyPath(t)
	if old, err := os.ReadFile(path); err == nil && string(old) == line {
		return nil
	}

	return writeFile(path, []byte(line))
}

// keyPath returns the path of the file with the target's saved key. The file has the format of known_hosts.
func (p *Provider) keyPath(t target) string {
	return filepath.Join(p.env.Dir, "ssh", "keys", t.address())
}
