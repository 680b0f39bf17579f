package github

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// Signer signs as minisign does. Signers with different names have different keys.
type Signer struct {
	private ed25519.PrivateKey
	id      string // eight bytes
}

// NewSigner returns a signer whose key depends only on its name.
func NewSigner(name string) Signer {
	seed := blake2b.Sum256([]byte(name))
	return Signer{ed25519.NewKeyFromSeed(seed[:]), string(seed[:8])}
}

// PublicKey returns the line that minisign prints.
func (s Signer) PublicKey() string {
	return encode("Ed", s.id, string(s.private.Public().(ed25519.PublicKey)))
}

// Sign returns a signature file over the hash of data, as minisign makes it today.
func (s Signer) Sign(data []byte) []byte {
	sum := blake2b.Sum512(data)
	return s.file("ED", sum[:])
}

// SignPlain returns a signature file over the data itself, as minisign made it before version 0.10.
func (s Signer) SignPlain(data []byte) []byte { return s.file("Ed", data) }

func (s Signer) file(algorithm string, data []byte) []byte {
	const comment = "timestamp:1541548800\tfile:SHA256SUMS"
	sig := ed25519.Sign(s.private, data)
	both := ed25519.Sign(s.private, append(sig, comment...))
	return fmt.Appendf(nil, "untrusted comment: signature of a test\n%s\ntrusted comment: %s\n%s\n",
		encode(algorithm, s.id, string(sig)), comment, encode(string(both)))
}

func encode(parts ...string) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Join(parts, "")))
}
