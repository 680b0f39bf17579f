package charmsource

import (
	"fmt"
	"net/http"
	"net/http/httptest"
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

func TestCountValues(t *testing.T) {
	for text, want := range map[string]int{
		`{}`: 1, `[1,2,3]`: 3, `{"a":",,","b":"\\\",","c,":[null,null]}`: 4, `"`: 1, `"\`: 1,
	} {
		if got := countValues([]byte(text)); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
