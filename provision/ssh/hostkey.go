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
// match it. Otherwise the key must be in the file of known hosts. A missing file counts as empty.
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
		verdict := known(t.address(), remote, key)
		return explainVerdict(t, file, key, verdict)
	}
	return hostKeyPolicy{check: check, attempts: [][]string{knownAlgorithms(t, known)}}, nil
}

// knownHostsFile returns the path of the file of known hosts: the setting ssh.known-hosts, or the user's own
// file.
func (p *Provider) knownHostsFile() (string, error) {
	return expandPath(cmp.Or(p.env.Config["known-hosts"], "~/.ssh/known_hosts"))
}

// keyFamilies returns the algorithms of each family of host keys, the best family first. dial tries each
// family in turn, since a fingerprint does not show the family of its key.
func keyFamilies() [][]string {
	return [][]string{
		{ssh.KeyAlgoED25519},
		{ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521},
		{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256},
	}
}

// pinFingerprint returns a check that accepts only the key with the target's fingerprint.
func pinFingerprint(t target) ssh.HostKeyCallback {
	return func(_ string, _ net.Addr, key ssh.PublicKey) error {
		if ssh.FingerprintSHA256(key) == t.Fingerprint {
			return nil
		}
		return changedKeyError(t, key, "the expected fingerprint is "+t.Fingerprint)
	}
}

// knownAlgorithms returns the algorithms of the host's known keys, which the host must use. If no key is
// known, it returns nil, for the library's default algorithms.
func knownAlgorithms(t target, known ssh.HostKeyCallback) (algorithms []string) {
	// The error for a key that does not match lists the known keys. The remote address is empty, since
	// known prefers t's address.
	verdict := known(t.address(), &net.TCPAddr{}, noKey{})
	var mismatch *knownhosts.KeyError
	if !errors.As(verdict, &mismatch) {
		return nil
	}

	for _, k := range mismatch.Want {
		keyAlgorithms := []string{k.Key.Type()}
		if k.Key.Type() == ssh.KeyAlgoRSA {
			keyAlgorithms = []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
		}

		for _, a := range keyAlgorithms {
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

// explainVerdict returns a readable error for verdict, the result of checking a host's key against the file of
// known hosts. It returns nil if the check has accepted the key.
func explainVerdict(t target, file string, key ssh.PublicKey, verdict error) error {
	if verdict == nil {
		return nil
	}

	var revoked *knownhosts.RevokedError
	if errors.As(verdict, &revoked) {
		return fmt.Errorf("THE KEY OF HOST %q IS REVOKED by %s:%d: %s %s; nothing was sent to the host",
			t, file, revoked.Revoked.Line, key.Type(), ssh.FingerprintSHA256(key))
	}

	var mismatch *knownhosts.KeyError
	if !errors.As(verdict, &mismatch) {
		return fmt.Errorf("cannot check the key of host %q: %w", t, verdict)
	}

	// Want lists the host's known keys.
	if len(mismatch.Want) == 0 {
		return unknownKeyError(t, key, file)
	}
	return changedKeyError(t, key, fmt.Sprintf("%s:%d has a different key", file, mismatch.Want[0].Line))
}

// unknownKeyError returns the error for an unknown key, with hints on how to confirm the key.
func unknownKeyError(t target, key ssh.PublicKey, file string) error {
	fingerprint := ssh.FingerprintSHA256(key)
	// The name of the file with the host's key contains this word. ECDSA is the default, since it has several
	// key types.
	family := "ecdsa"
	switch key.Type() {
	case ssh.KeyAlgoED25519:
		family = "ed25519"
	case ssh.KeyAlgoRSA:
		family = "rsa"
	}

	return withHints(fmt.Errorf("cannot trust host %q: its key %s %s is unknown",
		t, key.Type(), fingerprint),
		"compare the key at the host's own console: ssh-keygen -lf /etc/ssh/ssh_host_"+family+"_key.pub",
		fmt.Sprintf(
			"if the key is the same, confirm it with juju add-machine 'ssh:%s#%s', with that fingerprint in ssh.pool, or with the host's key in %s",
			t, fingerprint, file,
		))
}

// changedKeyError returns the error for a key that is not the trusted one. The argument want is a clause that
// says which key is trusted.
func changedKeyError(t target, key ssh.PublicKey, want string) error {
	return withHints(fmt.Errorf("HOST %q HAS A DIFFERENT KEY THAN EXPECTED: %s %s, but %s; an attack can cause this, so nothing was sent to the host",
		t, key.Type(), ssh.FingerprintSHA256(key), want),
		"if the host was reinstalled: check its new fingerprint at its own console, then replace the old key (ssh-keygen -R, or the pool's fingerprint)")
}

// saveHostKey saves the key of a host with a fingerprint, so that juju ssh can also check the key. It does
// nothing for a host without a fingerprint, since its key is in the file of known hosts.
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
