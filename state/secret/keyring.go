package secret

import (
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

// ErrNoKey: the content is sealed with a key that is not at hand.
var ErrNoKey = errors.New("no key for secrets")

// Key is one key that seals.
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

func (k Key) newAEAD() (cipher.AEAD, error) {
	key, err := base64.StdEncoding.DecodeString(k.Key)
	if err != nil || len(key) != chacha20poly1305.KeySize {
		return nil, fmt.Errorf("the key %q for secrets is damaged", k.ID)
	}
	return chacha20poly1305.NewX(key)
}

// Keyring is the keys that open, the newest last: that one seals.
type Keyring []Key

// Sealed is a content that only its key's holders can read.
type Sealed struct {
	Key  string `json:"key"` // its id
	Data []byte `json:"data,omitempty"`
	Blob string `json:"blob,omitempty"` // the sha256 of the blob that has the data instead
}

// place names what is sealed: nothing that was sealed for one place opens at another.
func (r *Record) place(revision int) []byte {
	return fmt.Appendf(nil, "%s/%s/%d", r.Origin, r.ID, revision)
}

// Seal seals the content of a secret's revision, with the newest key.
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
	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return Sealed{Key: newest.ID, Data: aead.Seal(nonce, nonce, plain, r.place(revision))}, err
}

// Open opens what was sealed as the content of that revision. ErrNoKey.
func (k Keyring) Open(r *Record, revision int, s Sealed) (c Content, err error) {
	i := slices.IndexFunc(k, func(key Key) bool { return key.ID == s.Key })
	if i < 0 {
		return nil, fmt.Errorf("%w: secret %q is sealed with the key %q, which is not here", ErrNoKey, r.ID, s.Key)
	}
	aead, err := k[i].newAEAD()
	if err != nil {
		return nil, err
	}
	n := min(aead.NonceSize(), len(s.Data))
	if n < aead.NonceSize() {
		err = errors.New("it is cut off")
	} else if s.Data, err = aead.Open(nil, s.Data[:n], s.Data[n:], r.place(revision)); err == nil {
		err = json.Unmarshal(s.Data, &c)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot open revision %d of secret %q: it was sealed as another's content, or is damaged", revision, r.ID)
	}
	return c, nil
}
