package release

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/crypto/blake2b"
)

// SumsFile and SignatureFile are the assets that authenticate the others.
const (
	SumsFile      = "SHA256SUMS"
	SignatureFile = "SHA256SUMS.minisig"
)

// Sums are SHA-256 sums by file name.
type Sums map[string][sha256.Size]byte

// ParseSums reads the output of sha256sum: lines of 64 hex digits, a blank, a blank or an asterisk, and a
// name. It returns an error for anything else, such as an error page.
func ParseSums(data []byte) (Sums, error) {
	sums := Sums{}
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			continue
		}
		if err := sums.addLine(line); err != nil {
			return nil, fmt.Errorf("cannot read %s, line %d: %w", SumsFile, i+1, err)
		}
	}

	if len(sums) == 0 {
		return nil, fmt.Errorf("cannot read %s: it is empty", SumsFile)
	}

	return sums, nil
}

// addLine parses a line as sha256sum prints it.
func (s Sums) addLine(line string) error {
	const digits = 2 * sha256.Size
	if len(line) < digits+3 || line[digits] != ' ' || !strings.ContainsRune(" *", rune(line[digits+1])) {
		return fmt.Errorf("it is not a sum and a name")
	}
	raw, err := hex.DecodeString(line[:digits])
	if err != nil {
		return fmt.Errorf("the sum is not hexadecimal")
	}

	name, sum := line[digits+2:], [sha256.Size]byte(raw)
	if before, ok := s[name]; ok && before != sum {
		return fmt.Errorf("%q has two different sums", name)
	}

	s[name] = sum
	return nil
}

// PublicKey is a minisign public key.
// The format: https://jedisct1.github.io/minisign/#signature-format
type PublicKey struct {
	id  [8]byte
	key [ed25519.PublicKeySize]byte
}

// ParsePublicKey reads the one line of base64 that minisign shows, or the file
// that it writes (a comment, and that line).
func ParsePublicKey(s string) (PublicKey, error) {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[len(lines)-1]))
	if err != nil || len(lines) > 2 || len(raw) != 2+8+ed25519.PublicKeySize || string(raw[:2]) != "Ed" {
		return PublicKey{}, errors.New("cannot read the public key: it is none of minisign's")
	}
	return PublicKey{id: [8]byte(raw[2:10]), key: [ed25519.PublicKeySize]byte(raw[10:])}, nil
}

type signature struct {
	hashed  bool // the data's BLAKE2b-512 was signed, not the data
	id      [8]byte
	sig     [ed25519.SignatureSize]byte
	comment string
	global  [ed25519.SignatureSize]byte // of sig and comment
}

// Verify checks that the signature file is the key's over the data, and returns the
// comment that was signed along. Any doubt is an error.
func (k PublicKey) Verify(data, file []byte) (comment string, err error) {
	s, err := parseSignature(string(file))
	if err != nil {
		return "", fmt.Errorf("cannot verify the signature: %w", err)
	}
	if s.id != k.id {
		return "", fmt.Errorf("cannot verify the signature: it is by key %s, not %s",
			keyName(s.id), keyName(k.id))
	}

	if s.hashed {
		sum := blake2b.Sum512(data)
		data = sum[:]
	}
	if !ed25519.Verify(k.key[:], data, s.sig[:]) {
		return "", errors.New("cannot verify the signature: the data is not what was signed")
	}
	if !ed25519.Verify(k.key[:], append(s.sig[:], s.comment...), s.global[:]) {
		return "", errors.New("cannot verify the signature: its comment is not what was signed")
	}

	return s.comment, nil
}

// keyName writes a key's id as minisign does: a little-endian number.
func keyName(id [8]byte) string { return fmt.Sprintf("%016X", binary.LittleEndian.Uint64(id[:])) }

// parseSignature reads a signature in minisign's format.
func parseSignature(file string) (s signature, err error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(file, "\r\n", "\n"), "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "untrusted comment:") {
		return s, errors.New("it is no minisign signature")
	}

	comment, ok := strings.CutPrefix(lines[2], "trusted comment: ")
	raw, err1 := base64.StdEncoding.DecodeString(lines[1])
	global, err2 := base64.StdEncoding.DecodeString(lines[3])
	if !ok || err1 != nil || err2 != nil || len(raw) != 2+8+ed25519.SignatureSize ||
		len(global) != ed25519.SignatureSize {
		return s, errors.New("it is no minisign signature")
	}

	algorithm := string(raw[:2])
	if algorithm != "Ed" && algorithm != "ED" {
		return s, fmt.Errorf("its algorithm %q is not minisign's", algorithm)
	}

	return signature{
		hashed:  algorithm == "ED",
		id:      [8]byte(raw[2:10]),
		sig:     [ed25519.SignatureSize]byte(raw[10:]),
		comment: comment,
		global:  [ed25519.SignatureSize]byte(global),
	}, nil
}

// Trust reads the sums of a release. With a key, a signature over them is
// needed; a release without one is refused.
func Trust(key *PublicKey, sums, sig []byte) (Sums, error) {
	if key != nil && sig == nil {
		return nil, fmt.Errorf("cannot trust the release: it has no %s, and a public key is configured",
			SignatureFile)
	}

	if key != nil {
		if _, err := key.Verify(sums, sig); err != nil {
			return nil, fmt.Errorf("cannot trust %s: %w", SumsFile, err)
		}
	}

	return ParseSums(sums)
}
