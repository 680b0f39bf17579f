// Package secret defines secrets, independently of the store: their ids, content, policies, records and
// sealing. It does no I/O. The caller passes the time and the keys.
package secret

import (
	"bytes"
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"
	"unicode/utf8"
)

// Content has the keys and values of one revision. Values can be any bytes.
type Content map[string][]byte

// MaxContent limits the keys and values of one revision together, in bytes.
const MaxContent = 1 << 20

// Check returns an error if the content is empty or too large.
func (c Content) Check() error {
	size := 0
	for key, value := range c {
		size += len(key) + len(value)
	}

	switch {
	case len(c) == 0:
		return errors.New("missing secret value or filename")
	case size > MaxContent:
		return fmt.Errorf("secret content has %d bytes; the limit is %d", size, MaxContent)
	}

	return nil
}

// Equal reports whether two contents have the same keys and values.
func (c Content) Equal(other Content) bool { return maps.EqualFunc(c, other, bytes.Equal) }

// Texts returns the values as texts. A value that is not UTF-8 is encoded in base64, under the key
// KEY#base64, which [Content.Add] accepts.
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

// AddWords adds the values of KEY=VALUE words. With KEY#base64, the value is in base64. With KEY#file, the
// value is the path of a file, which AddWords reads with read. Only an error of read can contain a VALUE: the path.
// After an error, c has the values of the words before the invalid one.
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

// Add adds the value of one word KEY=VALUE, as AddWords does. key can end with #base64 or #file, which the content's
// key does not keep. Add replaces the value of a key that the content already has.
func (c Content) Add(key, value string, read func(path string) ([]byte, error)) error {
	name, form, _ := strings.Cut(key, "#")
	if !isKey(name) {
		return keyError(key)
	}

	switch form {
	case "":
		c[name] = []byte(value)
		return nil
	case "base64":
		data, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return fmt.Errorf("value of key %q is not base64", name)
		}
		c[name] = data
		return nil
	case "file":
		data, err := read(value)
		if err != nil {
			return err
		}
		c[name] = data
		return nil
	}

	return keyError(key)
}

// keyError is the error for an invalid key of a secret's content.
type keyError string

// Error returns Juju's message for an invalid key.
func (k keyError) Error() string { return fmt.Sprintf("key %q not valid", string(k)) }

// Hint returns the rule for keys.
func (keyError) Hint() string {
	return "a key has at least three lower-case letters and digits, a letter first, and single dashes inside: api-key; #base64 or #file may follow"
}

// isKey reports whether a key is valid: at least three lower-case letters and digits, beginning with a
// letter, with single dashes between them.
func isKey(key string) bool {
	for i, c := range []byte(key) {
		isInside := i > 0 && i < len(key)-1
		switch {
		case c >= 'a' && c <= 'z':
		case c >= '0' && c <= '9' && i > 0:
		case c == '-' && isInside && key[i-1] != '-':
		default:
			return false
		}
	}

	return len(key)-strings.Count(key, "-") >= 3
}

// Scheme begins the URI of a secret: "secret:ID", or "secret://UUID/ID" with the environment's UUID.
const Scheme = "secret:"

// CredentialID is the id of the operators' secret with the cloud's endpoint and a credential for it, as JSON
// under CredentialKey.
const CredentialID, CredentialKey = "credential0000000000", "cloud-spec"

// idEncoding returns the encoding of ids. Encoded ids have the same order as their bytes.
func idEncoding() *base32.Encoding { return base32.HexEncoding.WithPadding(base32.NoPadding) }

// NewID returns a random id of 20 characters. Ids sort by the time of their creation.
func NewID(now time.Time) string {
	b := make([]byte, 12)
	_, _ = rand.Read(b) // never fails
	binary.BigEndian.PutUint32(b, uint32(now.Unix()))
	return strings.ToLower(idEncoding().EncodeToString(b))
}

// ParseID parses a secret's id, alone or in a URI. It ignores the UUID in a URI: ids are unique, and charms
// in a restored environment may have URIs with the old UUID.
func ParseID(text string) (id string, err error) {
	id = strings.TrimPrefix(text, Scheme)
	if rest, full := strings.CutPrefix(id, "//"); full {
		_, id, _ = strings.Cut(rest, "/")
	}
	raw, err := idEncoding().DecodeString(strings.ToUpper(id))
	// An id is the encoding of 12 bytes, in lower case.
	if err != nil || len(raw) != 12 || id != strings.ToLower(id) {
		return "", fmt.Errorf("secret URI %q not valid", text)
	}

	return id, nil
}

// NextRotation returns when a secret is due for rotation, if it was last rotated at the given time. Zero
// means never. It returns an error for an unknown policy.
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

// ParseExpiry parses a duration from now, which must be above 0, or a time as in RFC 3339. The time can lack the zone,
// or be only a date. It then counts as UTC.
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
