package charmsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	now := time.Date(2024, 9, 10, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": -1, "soon": -1, "-3": -1, "0": 0, "7": 7 * time.Second,
		"Tue, 10 Sep 2024 12:00:30 GMT": 30 * time.Second, "Tue, 10 Sep 2024 11:00:00 GMT": 0,
	} {
		if got := retryAfter(text, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestProxySkips(t *testing.T) {
	p := Proxy{HTTP: "http://p:1", None: "example.com, .internal,10.0.0.0/8"}
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "example.com": true, "a.example.com": true, "notexample.com": false,
		"x.internal": true, "10.1.2.3": true, "11.1.2.3": false,
	} {
		if got := p.skips(host); got != want {
			t.Errorf("%s: %t, want %t", host, got, want)
		}
	}
}

// TestRedirectToPlain checks that neither an answer nor a download of an encrypted store can come from a host without
// encryption.
func TestRedirectToPlain(t *testing.T) {
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"results": []}`)
	}))
	defer plain.Close()
	encrypted := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusTemporaryRedirect))
	defer encrypted.Close()

	c, err := NewCharmhub(Options{URL: encrypted.URL})
	if err != nil {
		t.Fatal(err)
	}
	c.api.Transport = encrypted.Client().Transport
	c.files.Transport = c.api.Transport

	_, findErr := c.Find(t.Context(), Query{})
	_, resolveErr := c.Resolve(t.Context(), Wish{Name: "db"})
	file := File{URL: encrypted.URL, Size: 1, SHA256: strings.Repeat("0", 64)}
	_, fetchErr := c.Fetch(t.Context(), file, filepath.Join(t.TempDir(), "file"))
	for what, err := range map[string]error{"find": findErr, "resolve": resolveErr, "fetch": fetchErr} {
		if err == nil || !strings.Contains(err.Error(), "which is not encrypted") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestDownloadErrors checks that the error of a download names the file's own host and the limit that applies.
// An error of writing the file must not count as an error of the store.
func TestDownloadErrors(t *testing.T) {
	hang := make(chan struct{})
	files := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/hangs":
			<-hang
		case "/cut":
			w.Header().Set("Content-Length", "9")
		}
		_, _ = io.WriteString(w, "x")
	}))
	defer files.Close()
	defer close(hang)

	c, err := NewCharmhub(Options{URL: "http://localhost:1"})
	if err != nil {
		t.Fatal(err)
	}
	c.files.Transport = &http.Transport{ResponseHeaderTimeout: 50 * time.Millisecond}
	host := strings.TrimPrefix(files.URL, "http://")
	open := func() *os.File {
		file, err := os.Create(filepath.Join(t.TempDir(), "file.part"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = file.Close() })
		return file
	}

	for path, want := range map[string]string{
		"/hangs": host + " did not answer within 30s",
		"/cut":   host + " closed the connection before it had answered",
	} {
		_, err := c.download(t.Context(), File{URL: files.URL + path, Size: 9}, open())
		if !errors.Is(err, ErrAway) || err.Error() != want {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}

	dial := &url.Error{URL: files.URL, Err: &net.OpError{Op: "dial", Err: context.DeadlineExceeded}}
	if err := away("other", silenceTimeout, dial); err.Error() != host+" did not answer within 10s" {
		t.Error(err)
	}

	// Writing fails, since the file is closed as soon as the first bytes arrive.
	to := open()
	c.progress = func(string, int, int) { _ = to.Close() }
	_, err = c.download(t.Context(), File{URL: files.URL, Size: 1}, to)
	if !errors.Is(err, os.ErrClosed) || errors.Is(err, ErrAway) || strings.Contains(err.Error(), "localhost") {
		t.Errorf("%v, want an error about the file", err)
	}
}

func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 1, `[1,2,3]`: 3, `{"a":",,","b":"\\\",","c,":[null,null]}`: 4, `"`: 1, `"\`: 1,
	} {
		if got := countValues([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}

// TestStoreURL checks that only a URL to which paths can be added is accepted.
func TestStoreURL(t *testing.T) {
	for text, isValid := range map[string]bool{
		"https://host": true, "http://host:1/mirror/": true,
		"host": false, "ftp://host": false, "https://": false, "https://u@host": false,
		"https://host?": false, "https://host?x=1": false, "https://host/#x": false, "https://host/#": false,
	} {
		if _, err := parseBase(text); (err == nil) != isValid {
			t.Errorf("%s: %v", text, err)
		}
	}
}
