package bootworld

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// proxy FILE: starts an HTTP proxy, and sets PROXY to its URL. The file gets a line for each request
// through the proxy.
func proxy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: proxy FILE")
	}
	log, err := os.Create(ts.MkAbs(args[0]))
	ts.Check(err)
	var mu sync.Mutex
	forward := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		fmt.Fprintln(log, r.Method, r.URL.Path)
		mu.Unlock()
		forward.ServeHTTP(w, r)
	}))
	ts.Defer(func() {
		server.CloseClientConnections()
		server.Close()
		log.Close()
	})
	ts.Setenv("PROXY", server.URL)
}
