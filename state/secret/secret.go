// Package secret is what secrets are without a store: their ids, content, policies, records
// and sealing. It is pure: time is an argument, and keys are its caller's. Whoever needs it
// may import it.
package secret

import (
	"bytes"
	"context"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/crypto/chacha20poly1305"
)

// Content is the keys and values of one revision. Values may be any bytes.
type Content map[string][]byte

// MaxContent bounds the keys and values of one revision together, in bytes.
const MaxContent = 1 << 20

// Check returns why the content cannot be that of a secret.
func (c Content) Check() error {
	size := 0
	for key, value := range c {
		size += len(key) + len(value)
	}

	switch {
	case len(c) == 0:
		return errors.New("missing secret value or filename")
	case size > MaxContent:
		return fmt.Errorf("secret content has %d bytes, at most %d", size, MaxContent)
	}

	return nil
}

// Equal reports whether two contents have the same keys and values.
func (c Content) Equal(other Content) bool { return maps.EqualFunc(c, other, bytes.Equal) }

// Texts returns the values as texts. A value that is not UTF-8 has the key KEY#base64, which [Content.Add]
// takes back.
func (c Content) Texts() map[string]string {
	texts := make(map[string]string, len(c))
	for key, value := range c {
		if utf8.Valid(value) {
			texts[key] = string(value)
		} else {
			texts[key+"#base64"] = base64.StdEncoding.EncodeToString(value)
		}
	}

	return texts
}

// AddWords adds the values of KEY=VALUE words. KEY#base64 has its value in base64, KEY#file in a file,
// which read reads. The errors show no value.
func (c Content) AddWords(words []string, read func(path string) ([]byte, error)) error {
	for i, word := range words {
		key, value, ok := strings.Cut(word, "=")
		if !ok {
			return fmt.Errorf("argument %d of the content is not of the form key=value", i+1)
		}
		if err := c.Add(key, value, read); err != nil {
			return err
		}
	}

	return nil
}

// Add adds the value of one such word.
func (c Content) Add(key, value string, read func(path string) ([]byte, error)) (err error) {
	name, form, _ := strings.Cut(key, "#")
	switch {
	case !isKey(name), form != "" && form != "base64" && form != "file":
		return keyError(key)
	case form == "file":
		c[name], err = read(value)
	case form == "":
		c[name] = []byte(value)
	default:
		if c[name], err = base64.StdEncoding.DecodeString(value); err != nil {
			err = fmt.Errorf("value of key %q is not base64", name)
		}
	}

	return err
}

// keyError is a key that breaks the rule.
type keyError string

// Error returns Juju's words for an invalid key.
func (k keyError) Error() string { return fmt.Sprintf("key %q not valid", string(k)) }

// Hint says the rule.
func (keyError) Hint() string {
	return "a key has at least three lower-case letters and digits, a letter first, and single dashes inside: api-key; #base64 or #file may follow"
}

// isKey reports whether a key is valid: at least three lower-case letters and digits, a letter first, with
// single dashes inside.
func isKey(key string) bool {
	for i, c := range []byte(key) {
		isLetter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9' && i > 0
		if !isLetter && (c != '-' || i == 0 || i == len(key)-1 || key[i-1] == '-') {
			return false
		}
	}

	return len(key)-strings.Count(key, "-") >= 3
}

// Scheme begins the URI of a secret: "secret:ID", or "secret://UUID/ID" with the environment's uuid.
const Scheme = "secret:"

// CredentialID is the id of the operators' secret with how the cloud is reached, and a credential
// for it: JSON under CredentialKey.
const CredentialID, CredentialKey = "credential0000000000", "cloud-spec"

func idEncoding() *base32.Encoding { return base32.HexEncoding.WithPadding(base32.NoPadding) }

// NewID returns an id that nobody can guess: 20 characters that sort by the time.
func NewID(now time.Time) string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	binary.BigEndian.PutUint32(b, uint32(now.Unix()))
	return strings.ToLower(idEncoding().EncodeToString(b))
}

// ParseID parses a secret's id, alone or in a URI. It ignores the uuid in a URI: ids are unique, and a
// restored environment has a different uuid than the URIs that its charms have noted.
func ParseID(text string) (id string, err error) {
	id = strings.TrimPrefix(text, Scheme)
	if rest, full := strings.CutPrefix(id, "//"); full {
		_, id, _ = strings.Cut(rest, "/")
	}
	raw, err := idEncoding().DecodeString(strings.ToUpper(id))
	if err != nil || len(raw) != 12 || id != strings.ToLower(id) {
		return "", fmt.Errorf("secret URI %q not valid", text)
	}

	return id, nil
}

// NextRotation returns when a secret that was rotated at a time is due again; zero for never. It returns an
// error for an unknown policy.
func NextRotation(policy string, at time.Time) (time.Time, error) {
	next, known := map[string]time.Time{
		"":          {},
		"never":     {},
		"hourly":    at.Add(time.Hour),
		"daily":     at.AddDate(0, 0, 1),
		"weekly":    at.AddDate(0, 0, 7),
		"monthly":   at.AddDate(0, 1, 0),
		"quarterly": at.AddDate(0, 3, 0),
		"yearly":    at.AddDate(1, 0, 0),
	}[policy]
	if !known {
		return time.Time{}, fmt.Errorf("rotate policy %q not valid", policy)
	}

	return next, nil
}

// ParseExpiry parses a duration from now, or a time as in RFC 3339.
func ParseExpiry(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return now.Add(d).UTC(), nil
	}

	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), nil
		}
	}

	return time.Time{}, fmt.Errorf("expire time or duration %q not valid", text)
}

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

// Sealer seals and opens the contents of secrets: a [Keyring], or the gateway that has one.
type Sealer interface {
	// Seal seals the content of a secret's revision.
	Seal(r *Record, revision int, c Content) (Sealed, error)
	// Open decrypts the sealed content of a secret's revision. It returns ErrNoKey if the key is not at hand.
	Open(r *Record, revision int, s Sealed) (Content, error)
}

// Keeper has the keys of secrets, or knows who has.
type Keeper interface {
	// Sealer returns what seals and opens as long as ctx is not done. It returns ErrNoKey if there are no keys.
	Sealer(ctx context.Context) (Sealer, error)
}

// SealerOf returns the keeper's sealer, and ErrNoKey without a keeper.
func SealerOf(ctx context.Context, k Keeper) (Sealer, error) {
	if k == nil {
		return nil, fmt.Errorf("%w: there is no folder of the environment here", ErrNoKey)
	}
	return k.Sealer(ctx)
}

// Keyring is the keys that open, the newest last: that one seals.
type Keyring []Key

// Sealed is a content that only its key's holders can read.
type Sealed struct {
	Key  string `json:"key"` // its id
	Data []byte `json:"data,omitempty"`
	Blob string `json:"blob,omitempty"` // the sha256 of the blob that has the data instead
}

// place returns the name of the place for which a revision is sealed. Content that was sealed for one place
// opens at no other.
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
	if err != nil {
		return Sealed{}, err
	}

	nonce := make([]byte, aead.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	return Sealed{Key: newest.ID, Data: aead.Seal(nonce, nonce, plain, r.place(revision))}, nil
}

// Open decrypts the sealed content of a secret's revision. It returns ErrNoKey if the ring lacks the key.
func (k Keyring) Open(r *Record, revision int, s Sealed) (c Content, err error) {
	i := slices.IndexFunc(k, func(key Key) bool { return key.ID == s.Key })
	if i < 0 {
		return nil, fmt.Errorf("%w: secret %q is sealed with the key %q, which is not here",
			ErrNoKey, r.ID, s.Key)
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
		return nil, fmt.Errorf(
			"cannot open revision %d of secret %q: it was sealed as another's content, or is damaged",
			revision, r.ID,
		)
	}

	return c, nil
}
