package release

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"bijou/testscripts/kit/need"
)

func TestSecretKey(t *testing.T) {
	k, err := NewSecretKey()
	if err != nil {
		t.Fatal(err)
	}
	again, err := ParseSecretKey(k.File(), "a password that is not needed")
	if err != nil || again.Public() != k.Public() {
		t.Fatalf("%v", err)
	}
	public, err := ParsePublicKey(k.PublicFile())
	if err != nil {
		t.Fatal(err)
	}
	if comment, err := public.Verify([]byte("sums"), again.Sign([]byte("sums"), "bijou 1.0")); err != nil || comment != "bijou 1.0" {
		t.Errorf("%q, %v", comment, err)
	}

	file := k.File()
	for _, bad := range []string{"", "RW", k.PublicFile(), strings.Replace(file, "\n", "\n\n", 1), file[:len(file)-5], file[:len(file)-60] + "AAAA" + file[len(file)-56:]} {
		if _, err := ParseSecretKey(bad, ""); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// TestMinisignKey signs with keys that minisign made, and lets minisign verify the signatures of our
// key.
func TestMinisignKey(t *testing.T) {
	minisign, err := exec.LookPath("minisign")
	if err != nil {
		need.Skip(t, "minisign", "minisign is not installed: none of its keys is read")
	}
	dir := t.TempDir()
	run := func(input string, args ...string) {
		t.Helper()
		cmd := exec.Command(minisign, args...)
		cmd.Dir = dir
		cmd.Stdin = strings.NewReader(input)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v: %s", args, err, out)
		}
	}
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("sums", "some sums\n")

	run("pw\npw\n", "-G", "-p", "hidden.pub", "-s", "hidden")
	for password, want := range map[string]error{"": ErrPassword, "pw": nil} {
		t.Run(password, func(t *testing.T) {
			k, err := ParseSecretKey(read("hidden"), password)
			if !errors.Is(err, want) {
				t.Error(err)
			}
			if err == nil {
				write("sums.minisig", string(k.Sign([]byte("some sums\n"), "bijou 1.0")))
				run("", "-V", "-p", "hidden.pub", "-m", "sums")
			}
		})
	}

	own, err := NewSecretKey()
	if err != nil {
		t.Fatal(err)
	}
	write("own", own.File())
	write("own.pub", own.PublicFile())
	run("", "-S", "-s", "own", "-m", "sums")
	run("", "-V", "-p", "own.pub", "-m", "sums")
}

func FuzzSecretKey(f *testing.F) {
	k, err := NewSecretKey()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(k.File())
	f.Fuzz(func(t *testing.T, file string) {
		if k, err := ParseSecretKey(file, ""); err == nil && k.Public() == "" {
			t.Error("a key that has no public one")
		}
	})
}
