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

// SumsFile and SignatureFile are the assets that authenticate the other assets.
const (
	SumsFile      = "SHA256SUMS"
	SignatureFile = "SHA256SUMS.minisig"
)

// Sums are SHA-256 sums by file name.
type Sums map[string][sha256.Size]byte

// ParseSums parses the output of sha256sum: lines of 64 hex digits, a space, a space or an asterisk, and a
// name. It ignores empty lines. It returns an error for any other line, such as one of an error page, for a
// name with two different sums, and if there are no sums.
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

// addLine parses a line in the format of sha256sum, and adds its sum to s. It returns an error if s has a
// different sum for the same name.
func (s Sums) addLine(line string) error {
	const digits = 2 * sha256.Size
	hasSeparator := len(line) >= digits+3 && line[digits] == ' ' && strings.ContainsRune(" *", rune(line[digits+1]))
	if !hasSeparator {
		return fmt.Errorf("want a sum and a name")
	}
	raw, err := hex.DecodeString(line[:digits])
	if err != nil {
		return fmt.Errorf("the sum is not hexadecimal")
	}

	name := line[digits+2:]
	sum := [sha256.Size]byte(raw)
	if existing, ok := s[name]; ok && existing != sum {
		return fmt.Errorf("%q has two different sums", name)
	}

	s[name] = sum
	return nil
}

// PublicKey is a minisign public key. Its format is described at
// https://jedisct1.github.io/minisign/#signature-format
type PublicKey struct {
	id  [8]byte
	key [ed25519.PublicKeySize]byte
}

// A key or signature of minisign begins with its algorithm. The ID of the key follows, and then the key or
// signature itself.
const (
	idOffset  = 2
	keyOffset = 10
)

// ParsePublicKey parses a public key in minisign's format: either the line in base64, or the file with a
// comment and that line.
func ParsePublicKey(s string) (PublicKey, error) {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(lines[len(lines)-1]))
	isComplete := err == nil && len(lines) <= 2 && len(raw) == keyOffset+ed25519.PublicKeySize
	if !isComplete || string(raw[:idOffset]) != "Ed" {
		return PublicKey{}, errors.New("cannot read the public key: it is not a minisign key")
	}

	return PublicKey{
		id:  [8]byte(raw[idOffset:keyOffset]),
		key: [ed25519.PublicKeySize]byte(raw[keyOffset:]),
	}, nil
}

// signature is the content of a signature file in minisign's format.
type signature struct {
	hashed  bool // the data's BLAKE2b-512 hash is signed, and not the data itself
	id      [8]byte
	sig     [ed25519.SignatureSize]byte
	comment string
	global  [ed25519.SignatureSize]byte // the signature of sig and comment
}

// Verify checks that file, the content of a signature file, is a signature of the data by this key. It returns
// the signature's comment, which is also signed.
func (k PublicKey) Verify(data, file []byte) (comment string, err error) {
	s, err := parseSignature(string(file))
	if err != nil {
		return "", fmt.Errorf("cannot verify the signature: %w", err)
	}
	if s.id != k.id {
		return "", fmt.Errorf("cannot verify the signature: it was made with key %s, not %s",
			keyName(s.id), keyName(k.id))
	}

	if s.hashed {
		sum := blake2b.Sum512(data)
		data = sum[:]
	}
	if !ed25519.Verify(k.key[:], data, s.sig[:]) {
		return "", errors.New("cannot verify the signature: the data differs from the signed data")
	}
	// The global signature also covers the comment.
	if !ed25519.Verify(k.key[:], append(s.sig[:], s.comment...), s.global[:]) {
		return "", errors.New("cannot verify the signature: its comment differs from the signed comment")
	}

	return s.comment, nil
}

// keyName formats a key's ID as minisign does, as a little-endian number.
func keyName(id [8]byte) string { return fmt.Sprintf("%016X", binary.LittleEndian.Uint64(id[:])) }

// parseSignature parses a signature file in minisign's format. Its lines are an untrusted comment, the
// signature of the data, a trusted comment, and the global signature, which signs the first signature and the
// trusted comment.
func parseSignature(file string) (s signature, err error) {
	lines := strings.Split(strings.TrimRight(strings.ReplaceAll(file, "\r\n", "\n"), "\n"), "\n")
	if len(lines) != 4 || !strings.HasPrefix(lines[0], "untrusted comment:") {
		return s, errors.New("the file is not a minisign signature")
	}

	raw, err := base64.StdEncoding.DecodeString(lines[1])
	if err != nil || len(raw) != keyOffset+ed25519.SignatureSize {
		return s, errors.New("the file is not a minisign signature")
	}
	comment, hasComment := strings.CutPrefix(lines[2], "trusted comment: ")
	global, err := base64.StdEncoding.DecodeString(lines[3])
	if err != nil || !hasComment || len(global) != ed25519.SignatureSize {
		return s, errors.New("the file is not a minisign signature")
	}

	// "ED" means that the hash of the data is signed, and not the data itself.
	algorithm := string(raw[:idOffset])
	if algorithm != "Ed" && algorithm != "ED" {
		return s, fmt.Errorf("minisign has no algorithm %q", algorithm)
	}

	return signature{
		hashed:  algorithm == "ED",
		id:      [8]byte(raw[idOffset:keyOffset]),
		sig:     [ed25519.SignatureSize]byte(raw[keyOffset:]),
		comment: comment,
		global:  [ed25519.SignatureSize]byte(global),
	}, nil
}

// Trust parses sums, the content of a release's SumsFile. If key is not nil, sig must be a valid signature of
// sums by the key. If key is nil, Trust ignores sig.
func Trust(key *PublicKey, sums, sig []byte) (Sums, error) {
	if key != nil {
		if sig == nil {
			return nil, fmt.Errorf("cannot trust the release: it has no %s, but a public key is configured",
				SignatureFile)
		}
		if _, err := key.Verify(sums, sig); err != nil {
			return nil, fmt.Errorf("cannot trust %s: %w", SumsFile, err)
		}
	}

	return ParseSums(sums)
}
