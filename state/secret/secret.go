// Package secret is what secrets are without a store: their ids, content, policies, records
// and sealing. It is pure: time is an argument, and keys are its caller's. Whoever needs it
// may import it.
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

// Texts returns the values as texts.
func (c Content) Texts() map[string]string {
	texts := make(map[string]string, len(c))
	for key, value := range c {
		texts[key] = string(value)
	}
	return texts
}

// AddWords adds what KEY=VALUE words say: KEY#base64 has its value in base64, KEY#file in a
// file that read reads. Errors show no value.
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

// Add adds what one such word says.
func (c Content) Add(key, value string, read func(path string) ([]byte, error)) (err error) {
	name, form, _ := strings.Cut(key, "#")
	switch {
	case !isKey(name), form != "" && form != "base64" && form != "file":
		return fmt.Errorf("key %q not valid", key)
	case form == "file":
		c[name], err = read(value)
	case form == "":
		c[name] = []byte(value)
	default:
		if c[name], err = base64.StdEncoding.DecodeString(value); err != nil {
			err = fmt.Errorf("value of key %q is no base64", name)
		}
	}
	return err
}

// isKey wants lower-case letters and digits, three at least, with single dashes inside, a
// letter first.
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

// ParseID parses an id alone or in a URI. The uuid does not matter: ids are unique, and a
// restored environment has another uuid than what its charms have noted.
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

// NextRotation returns when a secret of a policy is due that was rotated at a time; zero: never.
func NextRotation(policy string, at time.Time) (time.Time, error) {
	next, known := map[string]time.Time{
		"": {}, "never": {}, "hourly": at.Add(time.Hour),
		"daily": at.AddDate(0, 0, 1), "weekly": at.AddDate(0, 0, 7), "monthly": at.AddDate(0, 1, 0),
		"quarterly": at.AddDate(0, 3, 0), "yearly": at.AddDate(1, 0, 0),
	}[policy]
	if !known {
		return time.Time{}, fmt.Errorf("rotate policy %q not valid", policy)
	}
	return next, nil
}

// ParseExpiry parses a duration from now, or a time as RFC 3339 has it.
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
