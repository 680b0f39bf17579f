package releasetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Fault is a way in which a source of releases misbehaves.
type Fault string

// These are the faults. Some affect all requests, and some only packages and other files.
const (
	None         Fault = "none"
	Unauthorized Fault = "unauthorized" // 401
	Forbidden    Fault = "forbidden"    // 403
	Absent       Fault = "absent"       // 404
	Limited      Fault = "limited"      // 429, with RetryAfter as the time to wait
	Ill          Fault = "ill"          // 503
	Page         Fault = "page"         // a login page, with 200
	Hangup       Fault = "hangup"       // no answer

	FilesAbsent Fault = "files-absent" // 404
	FilesPage   Fault = "files-page"   // a web page, with 200
	FilesOther  Fault = "files-other"  // the same number of different bytes
	FilesCut    Fault = "files-cut"    // half of the requested bytes
)

// RetryAfter is the time for which a source with a rate limit tells clients to wait.
const RetryAfter = 7 * time.Second

// LoginPage is sent in place of a list or file.
const LoginPage = "<!DOCTYPE html><html><body><h1>Log in</h1></body></html>\n"

// Gate is an HTTP proxy in front of a source. Break makes it misbehave.
type Gate struct {
	URL   string
	mu    sync.Mutex
	fault Fault
}

// NewGate starts a gate that ends with the test.
func NewGate(t *testing.T) *Gate {
	g := &Gate{fault: None}
	server := httptest.NewServer(g)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	g.URL = server.URL
	return g
}

// After Break the gate misbehaves.
func (g *Gate) Break(_ *testing.T, f Fault) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fault = f
	return true
}

// ServeHTTP passes a request on, or misbehaves.
func (g *Gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.mu.Lock()
	fault := g.fault
	g.mu.Unlock()
	isFile := strings.HasSuffix(r.URL.Path, ".gz") || strings.HasSuffix(r.URL.Path, ".txt")

	switch {
	case strings.HasPrefix(string(fault), "files-") && !isFile:
		fault = None
	case fault == Limited:
		w.Header().Set("Retry-After", strconv.Itoa(int(RetryAfter.Seconds())))
	}

	code := map[Fault]int{Unauthorized: 401, Forbidden: 403, Absent: 404, Limited: 429, Ill: 503, FilesAbsent: 404}[fault]
	switch {
	case code != 0:
		http.Error(w, LoginPage, code)
	case fault == Page || fault == FilesPage:
		fmt.Fprint(w, LoginPage)
	case fault == Hangup:
		panic(http.ErrAbortHandler)
	case fault == FilesOther || fault == FilesCut:
		g.spoil(w, r, fault)
	default:
		pass(w, r)
	}
}

func pass(w http.ResponseWriter, r *http.Request) {
	(&httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}).ServeHTTP(w, r)
}

// spoil sends different bytes, or only some of the real ones.
func (g *Gate) spoil(w http.ResponseWriter, r *http.Request, fault Fault) {
	whole := httptest.NewRecorder()
	pass(whole, r)
	body := whole.Body.Bytes()
	if fault == FilesOther {
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
		_, _ = w.Write(bytes.Repeat([]byte("x"), len(body)))
		return
	}

	for key, values := range whole.Header() {
		w.Header()[key] = values
	}
	w.WriteHeader(whole.Code)
	_, _ = w.Write(body[:(len(body)+1)/2])
	if len(body) > 1 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

func hexOf(sum [sha256.Size]byte) string { return hex.EncodeToString(sum[:]) }
