package backupfile

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// small returns a backup with a key, a blob and a directory.
func small(t testing.TB) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	text := func(s string) func(io.Writer) error {
		return func(to io.Writer) error { _, err := io.WriteString(to, s); return err }
	}
	err := errors.Join(
		w.AddKeys([]Key{{"a", json.RawMessage(`"<x>"`)}, {"b/c", json.RawMessage(`{"n":1}`)}}),
		w.Add(BlobName(fmt.Sprintf("%x", sha256.Sum256([]byte("blob")))), text("blob")),
		w.Add(FolderName("0", "mysql-0"), text("tar")),
		w.Close(Header{Kind: Environment, Name: "x", Keys: 2, Blobs: 1, Has: []string{"keys"}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func open(data []byte) (*Reader, error) {
	return Open(bytes.NewReader(data), int64(len(data)), Environment)
}

func TestWhole(t *testing.T) {
	r, err := open(small(t))
	if err != nil {
		t.Fatal(err)
	}
	want := []Key{{"a", json.RawMessage(`"<x>"`)}, {"b/c", json.RawMessage(`{"n":1}`)}}
	if diff := cmp.Diff(want, r.Keys); diff != "" || r.Name != "x" || !r.Has(FolderName("0", "mysql-0")) {
		t.Errorf("%+v\n%s", r.Header, diff)
	}
	if got, err := r.ReadAll(FolderName("0", "mysql-0"), 3); err != nil || string(got) != "tar" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := r.ReadAll(FolderName("0", "mysql-0"), 2); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	if _, err := Open(bytes.NewReader(small(t)), int64(len(small(t))), Keyspace); err == nil || !strings.Contains(err.Error(), `kind "environment", not "neco"`) {
		t.Error(err)
	}
}

// TestDamaged cuts off a backup at each byte, and changes each byte. Each result must be refused or have the
// same content.
func TestDamaged(t *testing.T) {
	whole := small(t)
	want, err := open(whole)
	if err != nil {
		t.Fatal(err)
	}
	for n := range whole {
		if _, err := open(whole[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", n, err)
		}
		changed := bytes.Clone(whole)
		changed[n] ^= 0x55
		got, err := open(changed)
		if err == nil && (!cmp.Equal(want.Keys, got.Keys) || !cmp.Equal(want.Header, got.Header) || want.Sum != got.Sum) {
			t.Errorf("changed at %d: %+v", n, got)
		}
	}
}

// TestRefused checks that archives that are not backups are refused.
func TestRefused(t *testing.T) {
	header := `{"format":1,"kind":"environment","keys":1}`
	keys := `{"key":"a","value":1}`
	sums := func(files map[string]string) (all string) {
		for name, text := range files {
			all += fmt.Sprintf("%x  %s\n", sha256.Sum256([]byte(text)), name)
		}
		return all
	}
	good := map[string]string{headerFile: header, keysFile: keys}
	blob := BlobName(strings.Repeat("0", 64))
	for name, tt := range map[string]struct {
		files map[string]string
		sums  string
		want  string
	}{
		"another format": {map[string]string{headerFile: `{"format":2,"kind":"environment","bijou":"9.0"}`}, "", "the bijou that wrote it, 9.0"},
		"no header":      {map[string]string{keysFile: keys}, "", "no file \"header.json\""},
		"a wrong sum":    {good, sums(map[string]string{headerFile: header, keysFile: "x"}), "keys.jsonl\" has the sum"},
		"no sum":         {good, sums(map[string]string{headerFile: header}), "sums for 1"},
		"another file":   {map[string]string{headerFile: header, "x": "x"}, sums(map[string]string{headerFile: header, "x": "x"}), "has the invalid line"},
		"a false blob": {map[string]string{headerFile: header, keysFile: keys, blob: "x"},
			sums(map[string]string{headerFile: header, keysFile: keys, blob: "x"}), "has the sum"},
		"fewer keys": {map[string]string{headerFile: header, keysFile: ""}, sums(map[string]string{headerFile: header, keysFile: ""}), "0 keys, not 1"},
		"no order": {map[string]string{headerFile: header, keysFile: keys + keys},
			sums(map[string]string{headerFile: header, keysFile: keys + keys}), "out of order"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			z := zip.NewWriter(&b)
			for name, text := range tt.files {
				f, _ := z.Create(name)
				_, _ = io.WriteString(f, text)
			}
			f, _ := z.Create(sumsFile)
			_, _ = io.WriteString(f, tt.sums)
			_ = z.Close()
			if _, err := open(b.Bytes()); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

func TestWriteFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b")
	write := func(text string, fail error) func(io.Writer) error {
		return func(w io.Writer) error { _, err := io.WriteString(w, text); return errors.Join(err, fail) }
	}
	if err := WriteFile(path, false, write("one", nil)); err != nil {
		t.Fatal(err)
	}
	if err := WriteFile(path, false, write("two", nil)); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
	if err := WriteFile(path, true, write("three", io.ErrShortWrite)); !errors.Is(err, io.ErrShortWrite) {
		t.Error(err)
	}
	data, err := os.ReadFile(path)
	info, serr := os.Stat(path)
	if err != nil || serr != nil || string(data) != "one" || info.Mode().Perm() != 0o600 {
		t.Errorf("%q, %v, %v, %v", data, info.Mode(), err, serr)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), ".*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// FuzzOpen reads random bytes. An accepted backup must contain all the files that it lists.
func FuzzOpen(f *testing.F) {
	f.Add(small(f))
	f.Add([]byte("PK\x05\x06"))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := open(data)
		if err != nil {
			return
		}
		if len(r.Keys) != r.Header.Keys || r.Sum == "" {
			t.Errorf("%+v", r)
		}
		for _, name := range r.Names("") {
			if r.Size(name) < 0 {
				t.Errorf("%q is not there", name)
			}
		}
	})
}

// TestKeysAreBounded checks a file of a few KiB that contains a key of 400 MiB, and one that contains very
// many keys. Both must be refused before their keys are in memory.
func TestKeysAreBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		keys func(w io.Writer) error
		want string
	}{
		"a large key": {func(w io.Writer) error {
			_, err := io.WriteString(w, `{"key":"a","value":"`)
			for range 400 {
				_, err = w.Write(bytes.Repeat([]byte("x"), 1<<20))
			}
			return err
		}, "a key has more than 4194304 bytes"},
		"more keys than it says": {func(w io.Writer) error {
			for n := range 300_000 {
				fmt.Fprintf(w, `{"key":"%09d","value":"%0100d"}`+"\n", n, 0)
			}
			return nil
		}, "the backup has more than 1 keys"},
	} {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			w := NewWriter(&b)
			if err := errors.Join(w.Add(keysFile, tt.keys), w.Close(Header{Kind: Environment, Keys: 1})); err != nil {
				t.Fatal(err)
			}

			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := open(b.Bytes())
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrDamaged) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s: %v", name, err)
			}
			if cost := after.TotalAlloc - before.TotalAlloc; cost > 64<<20 {
				t.Errorf("%s: a file of %d bytes costs %d", name, b.Len(), cost)
			}
		})
	}
}

// TestScanKeepsNoKeys checks that a scan keeps no keys in memory, and that it refuses a backup that is cut
// off at any place.
func TestScanKeepsNoKeys(t *testing.T) {
	path := filepath.Join(t.TempDir(), "backup")
	scan := func(data []byte) (n int, err error) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		err = ScanFile(path, Environment, func(r *Reader) error {
			if len(r.Keys) > 0 {
				t.Errorf("%d keys were kept", len(r.Keys))
			}
			return r.EachKey(func(Key) error {
				n++
				return nil
			})
		})
		return n, err
	}

	whole := small(t)
	if n, err := scan(whole); err != nil || n != 2 {
		t.Errorf("%d keys, %v", n, err)
	}
	for n := range whole {
		if _, err := scan(whole[:n]); !errors.Is(err, ErrDamaged) {
			t.Errorf("cut at %d: %v", n, err)
		}
	}
}
