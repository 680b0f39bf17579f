package osutil

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"os"
)

// Digest returns the SHA-256 sum of the data as hexadecimal digits.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DigestReader reads r to its end. It returns the SHA-256 sum of the content, and its size in bytes.
func DigestReader(r io.Reader) (sum string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	if err != nil {
		return "", size, err
	}

	return hex.EncodeToString(hash.Sum(nil)), size, nil
}

// DigestFile returns the SHA-256 sum of a file, and its size in bytes.
func DigestFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return DigestReader(f)
}

// DigestFile384 returns the SHA-384 sum of a file as hexadecimal digits.
func DigestFile384(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()

	hash := sha512.New384()
	if _, err := io.Copy(hash, f); err != nil {
		return "", err
	}

	return hex.EncodeToString(hash.Sum(nil)), nil
}
