package github

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault is a way in which the server misbehaves.
type Fault string

// These are the faults.
const (
	None      Fault = "none"
	Broken    Fault = "broken"     // the API answers 500
	Denied    Fault = "denied"     // the API answers 401
	Gone      Fault = "gone"       // the API answers 404
	Busy      Fault = "busy"       // the API and files answer 503
	Nonsense  Fault = "nonsense"   // the API answers a web page, with 200
	Hangup    Fault = "hangup"     // every connection is cut before the answer
	Throttled Fault = "throttled"  // the API tells clients to retry after RetryAfter seconds, as for its secondary rate limit
	ErrorPage Fault = "error-page" // files are a web page, with 200
	Missing   Fault = "missing"    // files answer 404
	Cut       Fault = "cut"        // each answer with a file ends after half of the requested bytes
	Swapped   Fault = "swapped"    // files have the right size and different content
	Page      Fault = "page"       // packages and manifests are a web page, with 200; sums and signatures are as published
	Packages  Fault = "packages"   // the same for packages only
	Forged    Fault = "forged"     // packages have the right size and different content
)

// Faults lists them.
func Faults() []Fault {
	return []Fault{None, Broken, Denied, Gone, Busy, Nonsense, Hangup, Throttled, ErrorPage, Missing, Cut, Swapped, Page, Packages, Forged}
}

// Misbehave turns the fault on.
func (s *Server) Misbehave(f Fault) error {
	if !slices.Contains(Faults(), f) {
		return fmt.Errorf("there is no fault %q; there are %v", f, Faults())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
	return nil
}

const page = "<!DOCTYPE html><html><body><h1>Whoa there!</h1></body></html>\n"

// spoiled answers a request to the API according to the fault.
func (s *Server) spoiled(w http.ResponseWriter) bool {
	switch s.fault {
	case Broken:
		w.WriteHeader(http.StatusInternalServerError)
		fmt.Fprint(w, page)
	case Denied:
		answerMessage(w, http.StatusUnauthorized, "Bad credentials")
	case Gone:
		answerMessage(w, http.StatusNotFound, "Not Found")
	case Busy:
		w.WriteHeader(http.StatusServiceUnavailable)
	case Nonsense:
		fmt.Fprint(w, page)
	case Hangup:
		panic(http.ErrAbortHandler)
	case Throttled:
		w.Header().Set("Retry-After", strconv.Itoa(RetryAfter))
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"message": "You have exceeded a secondary rate limit.", "documentation_url": "https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`)
	default:
		return false
	}
	return true
}

func answerMessage(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(code)
	fmt.Fprintf(w, `{"message": %q}`, message)
}

// RetryAfter is the number of seconds that a throttled client must wait.
const RetryAfter = 2

// file serves one file.
func (s *Server) file(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count.Files++
	i := slices.IndexFunc(s.releases, func(o Release) bool { return o.Tag == r.PathValue("tag") })
	if i < 0 || s.fault == Missing || s.forbidden(w, r) {
		http.NotFound(w, r)
		return
	}
	data, ok := s.releases[i].Files[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
		return
	}
	switch s.of(r.PathValue("name")) {
	case Hangup:
		panic(http.ErrAbortHandler)
	case ErrorPage:
		fmt.Fprint(w, page)
	case Busy:
		w.WriteHeader(http.StatusServiceUnavailable)
	case Cut:
		half(w, r, data)
	case Swapped:
		data = bytes.Repeat([]byte("x"), len(data))
		fallthrough
	default:
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
	}
}

// of returns the fault that applies to the file called name.
func (s *Server) of(name string) Fault {
	sums := strings.HasPrefix(name, "SHA256SUMS")
	switch {
	case s.fault == Packages && (strings.HasSuffix(name, ".deb") || strings.HasSuffix(name, ".tar.gz")):
		return ErrorPage
	case s.fault == Packages:
		return None
	case sums && (s.fault == Page || s.fault == Forged):
		return None
	case s.fault == Page:
		return ErrorPage
	case s.fault == Forged:
		return Swapped
	}
	return s.fault
}

// half sends half of the requested bytes and cuts the connection. If only one byte was requested, it sends
// this byte.
func half(w http.ResponseWriter, r *http.Request, data []byte) {
	from := 0
	if _, err := fmt.Sscanf(r.Header.Get("Range"), "bytes=%d-", &from); err == nil && from < len(data) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(data)-1, len(data)))
	}
	left := data[from:]
	w.Header().Set("Content-Length", strconv.Itoa(len(left)))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	w.Write(left[:(len(left)+1)/2])
	if len(left) > 1 {
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
}

// head answers that a file has the number of bytes in its name. The file itself does not exist.
func (s *Server) head(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Length", r.PathValue("size"))
}
