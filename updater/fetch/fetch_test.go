package fetch_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bijou/updater/fetch"
)

func TestTo(t *testing.T) {
	data := bytes.Repeat([]byte("release "), 100_000)
	sum := sha256.Sum256(data)
	whole := func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
	asked := 0
	tests := []struct {
		what    string
		serve   http.HandlerFunc
		before  []byte // what a former try has left
		sum     [32]byte
		size    int64
		problem string
	}{
		{"whole", whole, nil, sum, int64(len(data)), ""},
		{"of unknown size", whole, nil, sum, 0, ""},
		{"gone on with", whole, data[:1000], sum, int64(len(data)), ""},
		{"all was there", whole, data, sum, 0, ""},
		{"cut, and gone on with", func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				w.Header().Set("Content-Length", "800000")
				_, _ = w.Write(data[:5000])
				panic(http.ErrAbortHandler)
			}
			whole(w, r)
		}, nil, sum, int64(len(data)), ""},
		{"an error page (fault 5)", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no such thing", http.StatusNotFound) }, nil, sum, 0, "404"},
		{"another file", whole, nil, [32]byte{1}, 0, "the sum is wrong"},
		{"a server without ranges", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) }, data[:77], sum, 0, ""},
		{"a part of something else", whole, []byte(strings.Repeat("x", 900)), sum, int64(len(data)), ""},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			path := filepath.Join(t.TempDir(), "sub", "file")
			if tt.before != nil {
				if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path+".part", tt.before, 0o600)); err != nil {
					t.Fatal(err)
				}
			}
			err := fetch.To(t.Context(), s.Client(), fetch.File{URL: s.URL, Size: tt.size, SHA256: tt.sum}, path)
			got, _ := os.ReadFile(path)
			switch {
			case tt.problem == "" && (err != nil || !bytes.Equal(got, data)):
				t.Errorf("%d bytes, %v", len(got), err)
			case tt.problem != "" && (err == nil || !strings.Contains(err.Error(), tt.problem) || got != nil):
				t.Errorf("%d bytes, %v", len(got), err)
			}
		})
	}
}

// What is there and right is not asked for again.
func TestThere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := fetch.File{URL: "http://127.0.0.1:1/", SHA256: sha256.Sum256([]byte("x"))}
	if err := fetch.To(t.Context(), http.DefaultClient, f, path); err != nil {
		t.Error(err)
	}
}
