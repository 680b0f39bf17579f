package bootworld

import (
	"crypto/subtle"
	"net/http"
	"net/http/httptest"

	"github.com/rogpeppe/go-internal/testscript"
)

// webFolder DIR [USER PASSWORD]: serves the directory over HTTP without listings, and sets FOLDER to
// its address, HOST:PORT. If a user is given, it refuses all other users.
func webFolder(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 && len(args) != 3 {
		ts.Fatalf("usage: webfolder DIR [USER PASSWORD]")
	}
	files := http.FileServer(http.Dir(ts.MkAbs(args[0])))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		user, password, _ := r.BasicAuth()
		switch {
		case len(args) == 3 && subtle.ConstantTimeCompare([]byte(user+":"+password), []byte(args[1]+":"+args[2])) == 0:
			w.WriteHeader(http.StatusUnauthorized)
		case r.URL.Path[len(r.URL.Path)-1] == '/':
			w.WriteHeader(http.StatusForbidden)
		default:
			files.ServeHTTP(w, r)
		}
	}))
	ts.Defer(server.Close)
	ts.Setenv("FOLDER", server.Listener.Addr().String())
}
