package keyfile

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"bijou/state/secret"
)

func TestFile(t *testing.T) {
	f := In(t.TempDir())
	for _, missing := range []File{f, ""} {
		if _, err := missing.Read(); !errors.Is(err, secret.ErrNoKey) {
			t.Errorf("%q: %v", missing, err)
		}
	}
	a, b := secret.NewKey(), secret.NewKey()
	if err := f.Write(secret.Keyring{a, b}); err != nil {
		t.Fatal(err)
	}
	got, err := f.Read()
	if diff := cmp.Diff(secret.Keyring{a, b}, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if info, err := os.Stat(string(f)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, text := range []string{"s3cr3t", "keys: []", "", "keys: [s3cr3t"} {
		if _, err := Parse([]byte(text)); err == nil || strings.Contains(err.Error(), "s3cr3t") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestWriteKeepsWhatItDoesNotKnow checks that a write keeps unknown members of the file, which a newer
// binary may have added.
func TestWriteKeepsWhatItDoesNotKnow(t *testing.T) {
	f := In(t.TempDir())
	one := secret.Key{ID: "aaaaaaa1", Key: secret.NewKey().Key} // YAML quotes an id that has only digits
	two := secret.Key{ID: "aaaaaaa2", Key: secret.NewKey().Key}
	was := "keys:\n    - id: " + one.ID + "\n      key: " + one.Key + "\n      made: today\nformat: 2\n"
	if err := os.WriteFile(string(f), []byte(was), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Write(secret.Keyring{one, two}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(string(f))
	want := strings.Replace(was, "format", "    - id: "+two.ID+"\n      key: "+two.Key+"\nformat", 1)
	if string(data) != want || err != nil {
		t.Errorf("got %s, %v", data, err)
	}
	ring, err := f.Read()
	if err != nil || len(ring) != 2 || ring[0] != one || ring[1] != two {
		t.Errorf("got %v, %v", ring, err)
	}
}
