package release

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
	"golang.org/x/crypto/scrypt"
)

// SecretKey signs releases as minisign does. Its format is described at
// https://jedisct1.github.io/minisign/#secret-key-format
type SecretKey struct {
	id  [8]byte
	key ed25519.PrivateKey
}

// ErrPassword is returned if a secret key needs a password and the password is missing or wrong.
var ErrPassword = errors.New("the secret key has a password")

const (
	// secretSize is the size of the part that a password encrypts: ID, key and checksum.
	secretSize = 8 + ed25519.PrivateKeySize + blake2b.Size256
	// secretStart is the size of the part before the secret: algorithms, salt and limits.
	secretStart = 2 + 2 + 2 + 32 + 8 + 8
	// maxScrypt limits the memory that the key derivation of a password can use, in bytes.
	maxScrypt = 1 << 31
)

// scryptDerivation marks a secret that is encrypted with a password by scrypt.
const scryptDerivation = "Sc"

// NewSecretKey returns a new random key.
func NewSecretKey() (k SecretKey, err error) {
	if _, err := rand.Read(k.id[:]); err != nil {
		return k, err
	}
	_, k.key, err = ed25519.GenerateKey(rand.Reader)
	return k, err
}

// ParseSecretKey parses file, the content of a secret key file in minisign's format. Its error wraps
// [ErrPassword] if the password is missing or wrong. It ignores a password that the key does not need.
func ParseSecretKey(file, password string) (k SecretKey, err error) {
	// A comment precedes the key, which is in base64.
	lines := strings.Split(strings.TrimSpace(file), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[len(lines)-1]))
	isComplete := err == nil && len(lines) == 2 && len(raw) == secretStart+secretSize
	if !isComplete {
		return k, errors.New("cannot read the secret key: it is not a minisign key")
	}

	algorithm := string(raw[:2])
	derivation := string(raw[2:4])
	checksumAlgorithm := string(raw[4:6])
	parameters := raw[6:secretStart] // of the derivation
	secret := raw[secretStart:]
	if algorithm != "Ed" || checksumAlgorithm != "B2" {
		return k, errors.New("cannot read the secret key: it is not a minisign key")
	}

	switch {
	case derivation == "\x00\x00":
		// The key has no password, and is stored unencrypted.
	case derivation != scryptDerivation:
		return k, errors.New("cannot read the secret key: minisign does not support its password scheme")
	case password == "":
		return k, ErrPassword
	default:
		if err := decryptSecret(secret, parameters, password); err != nil {
			return k, err
		}
	}

	k.id = [8]byte(secret)
	k.key = ed25519.PrivateKey(secret[8 : 8+ed25519.PrivateKeySize])
	sum := k.checksum()
	if string(sum[:]) != string(secret[8+ed25519.PrivateKeySize:]) {
		// A damaged key with a password cannot be told from a wrong password.
		if derivation == scryptDerivation {
			return SecretKey{}, fmt.Errorf("%w, and the given password is wrong", ErrPassword)
		}
		return SecretKey{}, errors.New("cannot read the secret key: its checksum is wrong")
	}

	return k, nil
}

// decryptSecret decrypts the secret in place. parameters are the salt and the limits of operations and memory
// for scrypt, which derives a key from the password. decryptSecret computes scrypt's own parameters from the
// limits as libsodium does, which minisign uses.
func decryptSecret(secret, parameters []byte, password string) error {
	const minOperations = 32768 // libsodium's minimum
	salt := parameters[:32]
	operations := max(binary.LittleEndian.Uint64(parameters[32:]), minOperations)
	memory := binary.LittleEndian.Uint64(parameters[40:])

	// Too many operations would take too long. They have the same limit and the same error as the memory.
	if memory > maxScrypt || operations > maxScrypt {
		return errors.New("cannot read the secret key: its password needs too much memory")
	}

	// n is the largest power of two within the limits.
	const r = 8
	maxN := min(operations/(r*4), memory/(r*128))
	n := uint64(2)
	for n <= maxN/2 {
		n *= 2
	}

	// If memory is the tighter limit, a larger p uses the operations that remain.
	p := uint64(1)
	if operations >= memory/32 {
		p = max(1, operations/4/n/r)
	}

	stream, err := scrypt.Key([]byte(password), salt, int(n), r, int(p), secretSize)
	if err != nil {
		return fmt.Errorf("cannot read the secret key: %w", err)
	}
	for i := range secret {
		secret[i] ^= stream[i]
	}

	return nil
}

// checksum returns the checksum of the algorithm, the ID and the key, as it is in the file.
func (k SecretKey) checksum() [blake2b.Size256]byte {
	return blake2b.Sum256(append(append([]byte("Ed"), k.id[:]...), k.key...))
}

// File returns the key as a file in minisign's format, without a password.
func (k SecretKey) File() string {
	raw := make([]byte, secretStart, secretStart+secretSize)
	// The key derivation "\x00\x00" means no password. The salt and the limits stay zero.
	copy(raw, "Ed\x00\x00B2")
	sum := k.checksum()
	raw = append(append(append(raw, k.id[:]...), k.key...), sum[:]...)
	return "untrusted comment: minisign secret key " + keyName(k.id) + "\n" + base64.StdEncoding.EncodeToString(raw) + "\n"
}

// Public returns the public key as a line for the setting minisign-public-key.
func (k SecretKey) Public() string {
	public := k.key.Public().(ed25519.PublicKey)
	return base64.StdEncoding.EncodeToString(append(append([]byte("Ed"), k.id[:]...), public...))
}

// PublicFile returns the public key as a file in minisign's format.
func (k SecretKey) PublicFile() string {
	return "untrusted comment: minisign public key " + keyName(k.id) + "\n" + k.Public() + "\n"
}

// Sign returns a signature file for the data. The comment must be one line, and is also signed.
func (k SecretKey) Sign(data []byte, comment string) []byte {
	// "ED" means that the hash of the data is signed, and not the data itself.
	sum := blake2b.Sum512(data)
	signature := ed25519.Sign(k.key, sum[:])
	withKeyID := append(append([]byte("ED"), k.id[:]...), signature...)

	// The second signature also covers the comment.
	global := ed25519.Sign(k.key, append(signature, comment...))
	return fmt.Appendf(nil, "untrusted comment: signature of a release\n%s\ntrusted comment: %s\n%s\n",
		base64.StdEncoding.EncodeToString(withKeyID), comment, base64.StdEncoding.EncodeToString(global))
}
