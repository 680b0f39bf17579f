package secret

import (
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/crypto/chacha20poly1305"
)

// ErrNoKey is returned if there is no key that can seal or open the content.
var ErrNoKey = errors.New("no key for secrets")

// Key is a key that seals secrets.
type Key struct {
	ID  string `yaml:"id"`
	Key string `yaml:"key"` // base64
}

// NewKey returns a random key.
func NewKey() Key {
	b := make([]byte, 4+chacha20poly1305.KeySize)
	_, _ = rand.Read(b) // never fails
	return Key{hex.EncodeToString(b[:4]), base64.StdEncoding.EncodeToString(b[4:])}
}

// newAEAD returns the cipher with the key. It returns an error if the key is damaged.
func (k Key) newAEAD() (cipher.AEAD, error) {
	key, err := base64.StdEncoding.DecodeString(k.Key)
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("the key %q for secrets is damaged", k.ID)
	}
	return chacha20poly1305.NewX(key)
}

// Sealer seals and opens the contents of secrets. It is a [Keyring], or a gateway that has a Keyring.
type Sealer interface {
	// Seal seals the content of a secret's revision.
	Seal(r *Record, revision int, c Content) (Sealed, error)
	// Open decrypts the sealed content of a secret's revision. It returns ErrNoKey if the Sealer does not
	// have the key.
	Open(r *Record, revision int, s Sealed) (Content, error)
}

// Keeper gives access to the keys of secrets, in this process or at a gateway.
type Keeper interface {
	// Sealer returns a Sealer that works until ctx is done. It returns ErrNoKey if there are no keys.
	Sealer(ctx context.Context) (Sealer, error)
}

// SealerOf returns the keeper's sealer. It returns ErrNoKey if k is nil.
func SealerOf(ctx context.Context, k Keeper) (Sealer, error) {
	if k == nil {
		return nil, fmt.Errorf("%w: this host has no directory of the model", ErrNoKey)
	}
	return k.Sealer(ctx)
}

// Keyring has the keys that open secrets, the newest last. Only the newest key seals contents.
type Keyring []Key

// Sealed is encrypted content.
type Sealed struct {
	Key  string `json:"key"` // the key's id
	Data []byte `json:"data,omitempty"`
	Blob string `json:"blob,omitempty"` // the SHA-256 sum of the blob with the data, if the data is not in this record
}

// additionalData returns the AEAD's additional data for a revision. Because of it, sealed content can only be opened
// as the same revision of the same secret.
func (r *Record) additionalData(revision int) []byte {
	return fmt.Appendf(nil, "%s/%s/%d", r.Origin, r.ID, revision)
}

// Seal seals the content of a secret's revision, with the newest key. It returns ErrNoKey if the ring is empty.
func (k Keyring) Seal(r *Record, revision int, c Content) (Sealed, error) {
	if len(k) == 0 {
		return Sealed{}, ErrNoKey
	}

	newest := k[len(k)-1]
	aead, err := newest.newAEAD()
	if err != nil {
		return Sealed{}, err
	}
	plain, err := json.Marshal(c)
	if err != nil {
		return Sealed{}, err
	}

	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	// The data begins with the nonce, which decrypt needs.
	return Sealed{Key: newest.ID, Data: aead.Seal(nonce, nonce, plain, r.additionalData(revision))}, nil
}

// ErrDamaged is returned if the content of a revision cannot be opened with its key.
var ErrDamaged = errors.New("the content was sealed for a different secret, or is damaged")

// Open decrypts the sealed content of a secret's revision. It returns ErrNoKey if the ring lacks the key, and
// ErrDamaged if the content was not sealed as this revision, or was damaged.
func (k Keyring) Open(r *Record, revision int, s Sealed) (Content, error) {
	i := slices.IndexFunc(k, func(key Key) bool { return key.ID == s.Key })
	if i < 0 {
		return nil, fmt.Errorf("%w: secret %q is sealed with the key %q, which is not on this host",
			ErrNoKey, r.ID, s.Key)
	}
	aead, err := k[i].newAEAD()
	if err != nil {
		return nil, err
	}

	c, err := decrypt(aead, s.Data, r.additionalData(revision))
	if err != nil {
		return nil, fmt.Errorf("cannot open revision %d of secret %q: %w", revision, r.ID, ErrDamaged)
	}

	return c, nil
}

// decrypt opens content that Seal has encrypted with the same additional data. data begins with the nonce.
func decrypt(aead cipher.AEAD, data, additional []byte) (c Content, err error) {
	n := aead.NonceSize()
	if len(data) < n {
		return nil, errors.New("the sealed content has no nonce")
	}
	plain, err := aead.Open(nil, data[:n], data[n:], additional)
	if err != nil {
		return nil, err
	}
	err = json.Unmarshal(plain, &c)
	return c, err
}
