package release_test

import (
	"bytes"
	"crypto/sha256"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"bijou/updater/release"
)

// TestResumeOfAnotherFile checks a download that was interrupted before its publisher replaced the file.
// The whole file is downloaded again.
func TestResumeOfAnotherFile(t *testing.T) {
	data := bytes.Repeat([]byte("right"), 1000)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}))
	defer server.Close()
	for _, size := range []int64{0, int64(len(data))} {
		for _, left := range []int{100, len(data)} {
			path := filepath.Join(t.TempDir(), "file")
			if err := os.WriteFile(path+".part", bytes.Repeat([]byte("x"), left), 0o600); err != nil {
				t.Fatal(err)
			}
			d := release.Download{Client: server.Client(), URL: server.URL, Path: path, Size: size, SHA256: sha256.Sum256(data)}
			if err := d.Get(t.Context()); err != nil {
				t.Errorf("size %d, %d bytes left: %v", size, left, err)
			}
			if got, err := os.ReadFile(path); !bytes.Equal(got, data) {
				t.Errorf("size %d, %d bytes left: %d other bytes, %v", size, left, len(got), err)
			}
			d.SHA256 = sha256.Sum256(nil) // bytes with a wrong sum are refused
			if err := d.Get(t.Context()); err == nil {
				t.Error("another file was taken")
			}
		}
	}
}
