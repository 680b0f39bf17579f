package osutil

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestDigest(t *testing.T) {
	const sum = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" // the example in FIPS 180-4
	if got := Digest([]byte("abc")); got != sum {
		t.Error(got)
	}
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("abc"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, size, err := DigestFile(path); got != sum || size != 3 || err != nil {
		t.Error(got, size, err)
	}
	if _, _, err := DigestFile(path + "x"); !os.IsNotExist(err) {
		t.Error(err)
	}
	if _, _, err := DigestReader(io.MultiReader(strings.NewReader("a"), iotest.ErrReader(io.ErrUnexpectedEOF))); err != io.ErrUnexpectedEOF {
		t.Error(err)
	}
}
