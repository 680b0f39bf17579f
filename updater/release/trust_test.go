package release

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/blake2b"

	"bijou/testscripts/kit/need"
)

// These are a public key, and two signatures of "test" that minisign has made with the private key: one over
// the data and one over its hash. Other implementations are tested with the same vectors.
const (
	knownKey  = "RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3"
	knownPure = "untrusted comment: signature from minisign secret key\n" +
		"RWQf6LRCGA9i59SLOFxz6NxvASXDJeRtuZykwQepbDEGt87ig1BNpWaVWuNrm73YiIiJbq71Wi+dP9eKL8OC351vwIasSSbXxwA=\n" +
		"trusted comment: timestamp:1555779966\tfile:test\n" +
		"QtKMXWyYcwdpZAlPF7tE2ENJkRd1ujvKjlj1m9RtHTBnZPa5WKU5uWRs5GoP5M/VqE81QFuMKI5k/SfNQUaOAA==\n"
	knownHashed = "untrusted comment: signature from minisign secret key\n" +
		"RUQf6LRCGA9i559r3g7V1qNyJDApGip8MfqcadIgT9CuhV3EMhHoN1mGTkUidF/z7SrlQgXdy8ofjb7bNJJylDOocrCo8KLzZwo=\n" +
		"trusted comment: timestamp:1556193335\tfile:test\n" +
		"y/rUw2y8/hOUYjZU71eHp/Wo1KZ40fGy2VJEDl34XMJM+TX48Ss/17u3IvIfbVR1FkZZSNCisQbuQY+bHwhEBg=="
)

func TestVerifyKnownSignatures(t *testing.T) {
	for _, text := range []string{knownKey, "untrusted comment: minisign public key E7620F1842B4E81F\n" + knownKey + "\n"} {
		key, err := ParsePublicKey(text)
		if err != nil {
			t.Fatal(err)
		}
		for _, sig := range []string{knownPure, knownHashed, strings.ReplaceAll(knownPure, "\n", "\r\n")} {
			if comment, err := key.Verify([]byte("test"), []byte(sig)); err != nil || !strings.HasSuffix(comment, "\tfile:test") {
				t.Errorf("%q, %v", comment, err)
			}
			if _, err := key.Verify([]byte("Test"), []byte(sig)); err == nil {
				t.Error("other data was accepted")
			}
		}
	}
}

// TestVerifyMinisign verifies sums that minisign signed with its own key, as .ci/release does and in
// the older format.
func TestVerifyMinisign(t *testing.T) {
	minisign, err := exec.LookPath("minisign")
	if err != nil {
		need.Skip(t, "minisign", "minisign is not installed: nothing is signed by it")
	}
	dir := t.TempDir()
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(minisign, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("minisign %v: %v: %s", args, err, out)
		}
	}
	read := func(name string) []byte {
		t.Helper()
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	sums := fmt.Appendf(nil, "%x  neco_1.2-1_amd64.deb\n", sha256.Sum256(nil))
	if err := os.WriteFile(filepath.Join(dir, SumsFile), sums, 0o600); err != nil {
		t.Fatal(err)
	}
	run("-G", "-W", "-p", "key.pub", "-s", "key")
	key, err := ParsePublicKey(string(read("key.pub")))
	if err != nil {
		t.Fatal(err)
	}
	for _, way := range []string{"-H", "-l"} {
		run("-S", way, "-s", "key", "-m", SumsFile, "-x", SignatureFile, "-t", "bijou 1.2-1")
		sig := read(SignatureFile)
		if comment, err := key.Verify(sums, sig); err != nil || comment != "bijou 1.2-1" {
			t.Errorf("%s: %q, %v", way, comment, err)
		}
		if _, err := Trust(&key, sums, sig); err != nil {
			t.Errorf("%s: %v", way, err)
		}
		if _, err := Trust(&key, append(sums, '\n'), sig); err == nil {
			t.Errorf("%s: other sums were trusted", way)
		}
	}
}

// TestVerifyRefuses changes each byte of a valid signature in turn. Only changes in the untrusted comment may
// be accepted.
func TestVerifyRefuses(t *testing.T) {
	key, err := ParsePublicKey(knownKey)
	if err != nil {
		t.Fatal(err)
	}
	for i := strings.Index(knownHashed, "\n"); i < len(knownHashed); i++ {
		broken := []byte(knownHashed)
		broken[i] ^= 1
		if _, err := key.Verify([]byte("test"), broken); err == nil {
			t.Errorf("byte %d (%q) may be changed", i, knownHashed[i])
		}
	}
	for _, sig := range []string{"", "<html>not found</html>", "untrusted comment: x\n\n\n", knownHashed + "\nmore"} {
		if _, err := key.Verify([]byte("test"), []byte(sig)); err == nil {
			t.Errorf("%q was accepted", sig)
		}
	}
}

// signer signs as minisign does.
type signer struct {
	private ed25519.PrivateKey
	id      [8]byte
}

func newSigner(seed byte) signer {
	return signer{ed25519.NewKeyFromSeed([]byte(strings.Repeat(string(seed), 32))), [8]byte{seed}}
}

func (s signer) key() string {
	return base64.StdEncoding.EncodeToString(append(append([]byte("Ed"), s.id[:]...), s.private.Public().(ed25519.PublicKey)...))
}

func (s signer) sign(data []byte, comment string) []byte {
	sum := blake2b.Sum512(data)
	sig := ed25519.Sign(s.private, sum[:])
	global := ed25519.Sign(s.private, append(sig, comment...))
	first := append(append([]byte("ED"), s.id[:]...), sig...)
	return fmt.Appendf(nil, "untrusted comment: x\n%s\ntrusted comment: %s\n%s\n", base64.StdEncoding.EncodeToString(first), comment, base64.StdEncoding.EncodeToString(global))
}

// TestTrust checks that only files with a signed checksum are trusted. The original neco had no checksums,
// and installed an error page.
func TestTrust(t *testing.T) {
	pkg := []byte("a package")
	sums := fmt.Appendf(nil, "%x  neco_1.2-1_amd64.deb\n%x *SOURCE\n", sha256.Sum256(pkg), sha256.Sum256(nil))
	good, other := newSigner('a'), newSigner('b')
	key, err := ParsePublicKey(good.key())
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		what string
		key  *PublicKey
		sums string
		sig  []byte
		err  string
	}{
		{"no key", nil, string(sums), nil, ""},
		{"signed", &key, string(sums), good.sign(sums, "c"), ""},
		{"unsigned", &key, string(sums), nil, "it has no SHA256SUMS.minisig"},
		{"empty signature", &key, string(sums), []byte{}, "not a minisign signature"},
		{"another's", &key, string(sums), other.sign(sums, "c"), "it was made with key 0000000000000062, not 0000000000000061"},
		{"other sums", &key, string(sums) + "\n", good.sign(sums, "c"), "the data differs from the signed data"},
		{"an error page", nil, "<html>404</html>\n", nil, "line 1: want a sum and a name"},
		{"nothing", nil, "\n\n", nil, "it is empty"},
		{"not hexadecimal", nil, strings.Repeat("g", 64) + "  x\n", nil, "line 1: the sum is not hexadecimal"},
		{"two sums of one file", nil, string(sums) + fmt.Sprintf("%x  SOURCE\n", sha256.Sum256(pkg)), nil, `line 3: "SOURCE" has two different sums`},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := Trust(tt.key, []byte(tt.sums), tt.sig)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			if err := got.Check("neco_1.2-1_amd64.deb", sha256.Sum256(pkg)); err != nil {
				t.Error(err)
			}
			if err := got.Check("neco_1.2-1_amd64.deb", sha256.Sum256([]byte("<html>502</html>"))); err == nil {
				t.Error("an error page was trusted")
			}
			if err := got.Check("unlisted", sha256.Sum256(pkg)); err == nil {
				t.Error("a file that is not listed was trusted")
			}
		})
	}
}

func TestParsePublicKeyRefuses(t *testing.T) {
	for _, s := range []string{"", "RW", knownKey[:55], "RUQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3", "a\nb\n" + knownKey, knownKey + "AAAA"} {
		if _, err := ParsePublicKey(s); err == nil {
			t.Errorf("%q was accepted", s)
		}
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte(knownPure), []byte("test"))
	f.Add([]byte(knownHashed), []byte("test"))
	key, err := ParsePublicKey(knownKey)
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, sig, data []byte) {
		if _, err := key.Verify(data, sig); err == nil && string(data) != "test" {
			t.Errorf("%q was verified", data)
		}
	})
}

func FuzzSums(f *testing.F) {
	f.Add([]byte(strings.Repeat("0", 64) + "  name\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		sums, err := ParseSums(data)
		for name, sum := range sums {
			if err != nil || name == "" || !strings.Contains(strings.ToLower(string(data)), fmt.Sprintf("%x", sum)) {
				t.Errorf("%q has the sum %x, %v", name, sum, err)
			}
		}
	})
}

// Check compares a file's sum with the published one. It returns an error for a file without a sum.
func (s Sums) Check(name string, got [sha256.Size]byte) error {
	want, ok := s[name]
	if !ok {
		return fmt.Errorf("cannot trust %q: %s does not list it", name, SumsFile)
	}
	if got != want {
		return fmt.Errorf("cannot trust %q: its sum is %x, not %x as published", name, got, want)
	}
	return nil
}
