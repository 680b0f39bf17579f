// Package github is a server that imitates GitHub's API for the releases of one repository, with pages, ETags
// and rate limits. It also serves the files. A test can make it misbehave in many ways.
//
// It imitates only the requests that the updater makes.
package github

import (
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// Repository is the repository with the releases.
const Repository = "bijou/boot"

// Release is one release as its publisher makes it.
type Release struct {
	Tag   string
	Pre   bool
	Draft bool
	Files map[string][]byte // the server adds SHA256SUMS if it is missing
}

// Count counts requests by kind.
type Count struct {
	Lists       int // pages of the list of releases
	NotModified int // lists that were answered with 304
	Refused     int // lists that were refused because of the rate limit
	Files       int // files, or parts of them
}

// Server is the server. Its methods can be called while it serves requests.
type Server struct {
	http *httptest.Server

	mu       sync.Mutex
	releases []Release // the newest first, as GitHub lists them
	pageSize int
	limit    int // remaining requests; negative means any number
	reset    int64
	token    string
	fault    Fault
	count    Count
}

// New starts a server. The caller must close it.
func New() *Server {
	s := newServer()
	s.http.Start()
	return s
}

// On starts a server on that listener.
func On(l net.Listener) *Server {
	s := newServer()
	_ = s.http.Listener.Close()
	s.http.Listener = l
	s.http.Start()
	return s
}

func newServer() *Server {
	s := &Server{pageSize: 2, limit: -1}
	mux := http.NewServeMux()
	// The first path is GitHub's own and the second is GitHub Enterprise's.
	for _, api := range []string{"/", "/api/v3/"} {
		mux.HandleFunc("GET "+api+"repos/"+Repository+"/releases", s.list)
	}
	mux.HandleFunc("GET /files/{tag}/{name}", s.file)
	mux.HandleFunc("HEAD /bytes/{size}", s.head)
	s.http = httptest.NewUnstartedServer(mux)
	return s
}

// URL returns the address of its API.
func (s *Server) URL() string { return s.http.URL + "/" }

// Close stops the server.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Publish adds a release or replaces the release with the same tag.
func (s *Server) Publish(r Release) {
	files := map[string][]byte{}
	for name, data := range r.Files {
		files[name] = data
	}
	if _, ok := files["SHA256SUMS"]; !ok {
		files["SHA256SUMS"] = Sums(files)
	}
	r.Files = files
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases = slices.DeleteFunc(s.releases, func(o Release) bool { return o.Tag == r.Tag })
	s.releases = slices.Insert(s.releases, 0, r)
}

// Delete removes the release with the given tag.
func (s *Server) Delete(tag string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases = slices.DeleteFunc(s.releases, func(r Release) bool { return r.Tag == tag })
}

// Replace makes these the server's only releases.
func (s *Server) Replace(all []Release) {
	s.mu.Lock()
	s.releases = nil
	s.mu.Unlock()
	for _, r := range all {
		s.Publish(r)
	}
}

// Change changes the files of a published release, including its sums.
func (s *Server) Change(tag string, change func(files map[string][]byte)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.releases, func(r Release) bool { return r.Tag == tag })
	if i < 0 {
		return fmt.Errorf("there is no release %q", tag)
	}
	change(s.releases[i].Files)
	return nil
}

// Sums returns what sha256sum prints for the files.
func Sums(files map[string][]byte) []byte {
	var b strings.Builder
	for _, name := range names(files) {
		fmt.Fprintf(&b, "%x  %s\n", sha256.Sum256(files[name]), name)
	}
	return []byte(b.String())
}

// Limit allows n more lists until reset (in Unix seconds). A negative number removes the limit.
func (s *Server) Limit(lists int, reset int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.reset = lists, reset
}

// Private refuses clients without the token.
func (s *Server) Private(token string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.token = token
}

// Count returns the number of requests so far.
func (s *Server) Count() Count {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.count
}

func names(files map[string][]byte) []string {
	var all []string
	for name := range files {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}
