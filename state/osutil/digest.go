package osutil

import (
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"io"
	"os"
)

// Digest returns the sum of the data.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// DigestReader returns the sum of all that is read, and its size in bytes.
func DigestReader(r io.Reader) (sum string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// DigestFile returns the sum of a file, and its size in bytes.
func DigestFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return DigestReader(f)
}

// DigestFile384 returns the SHA-384 of a file.
func DigestFile384(path string) (sum string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()

	hash := sha512.New384()
	_, err = io.Copy(hash, f)
	return hex.EncodeToString(hash.Sum(nil)), err
}
