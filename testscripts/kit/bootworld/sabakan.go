package bootworld

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/rogpeppe/go-internal/testscript"
)

// depot acts as sabakan, which stores uploads, and as the server of the files of releases. The content of
// each file is its name.
type depot struct {
	mu     sync.Mutex
	log    *os.File
	broken bool
	has    map[string]bool // by path
}

func (d *depot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	d.mu.Lock()
	defer d.mu.Unlock()
	what := strings.TrimPrefix(r.URL.Path, "/api/v1/")
	switch {
	case strings.HasPrefix(what, "/files/"):
		fmt.Fprint(w, path.Base(what))
	case d.broken:
		http.Error(w, "no disk is left", http.StatusInternalServerError)
	case r.Method == http.MethodPut:
		size, err := io.Copy(io.Discard, r.Body)
		if err != nil || d.has[what] {
			w.WriteHeader(http.StatusConflict)
			return
		}
		d.has[what] = true
		fmt.Fprintln(d.log, what, size > 0)
		w.WriteHeader(http.StatusCreated)
	case strings.HasSuffix(what, "/meta"):
		if !d.has[strings.TrimSuffix(what, "/meta")] {
			http.NotFound(w, r)
			return
		}
		fmt.Fprint(w, "{}")
	default:
		d.list(w, what)
	}
}

// list sends the ids below a path.
func (d *depot) list(w http.ResponseWriter, below string) {
	ids := []string{}
	for what := range d.has {
		if path.Dir(what) == below {
			ids = append(ids, path.Base(what))
		}
	}
	// Encode fails if the client hangs up.
	_ = json.NewEncoder(w).Encode(ids)
}

// sabakan VERB: a server that acts as sabakan.
//
//	start FILE  starts the server, and sets SABAKAN to its URL. The file gets a line for
//	            each upload
//	break       answers 500 from now on
//	mend        works again
func sabakan(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: sabakan start FILE|break|mend")
	}
	w := bootWorldOf(ts)
	switch args[0] {
	case "start":
		log, err := os.Create(ts.MkAbs(args[1]))
		ts.Check(err)
		w.depot = &depot{log: log, has: map[string]bool{}}
		server := httptest.NewServer(w.depot)
		ts.Defer(func() { server.Close(); log.Close() })
		ts.Setenv("SABAKAN", server.URL)
	case "break", "mend":
		w.depot.mu.Lock()
		defer w.depot.mu.Unlock()
		w.depot.broken = args[0] == "break"
	default:
		ts.Fatalf("sabakan: unknown verb %q", args[0])
	}
}
