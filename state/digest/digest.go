// Package digest is SHA-256 sums in hexadecimal digits. It imports nothing of bijou.
package digest

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
)

// Of returns the sum of the data.
func Of(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// OfReader returns the sum of all that is read, and its size in bytes.
func OfReader(r io.Reader) (sum string, size int64, err error) {
	hash := sha256.New()
	size, err = io.Copy(hash, r)
	return hex.EncodeToString(hash.Sum(nil)), size, err
}

// OfFile returns the sum of a file, and its size in bytes.
func OfFile(path string) (sum string, size int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer f.Close()
	return OfReader(f)
}
