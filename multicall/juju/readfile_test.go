package juju

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(path, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := readFile(path, 5); err != nil || string(data) != "12345" {
		t.Errorf("%q, %v", data, err)
	}
	for _, endless := range []string{path, "/dev/zero"} {
		if _, err := readFile(endless, 4); err == nil || !strings.Contains(err.Error(), "has more than 4 bytes") {
			t.Errorf("%s: %v", endless, err)
		}
	}
}
