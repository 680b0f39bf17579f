package charmhub

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Fault is a way in which the server misbehaves.
type Fault string

// These are the faults.
const (
	None         Fault = "none"
	Throttled    Fault = "throttled"     // 429 with a retry after a second
	Unavailable  Fault = "unavailable"   // 503 and a web page, with a retry after a second
	Unexplained  Fault = "unexplained"   // 503 and a web page
	Closed       Fault = "closed"        // 429 with a retry after an hour
	Hangup       Fault = "hangup"        // connections are closed without a byte
	WrongURL     Fault = "wrong-url"     // 404 in plain text
	Nonsense     Fault = "nonsense"      // a web page, with 200
	Cut          Fault = "cut"           // files end halfway
	WrongSum     Fault = "wrong-sum"     // files have a different sum from the announced one
	WrongSize    Fault = "wrong-size"    // files are a byte shorter than announced
	UnknownField Fault = "unknown-field" // answers have unknown fields
	NullCharm    Fault = "null-charm"    // answers have neither a charm nor an error
	OtherHost    Fault = "other-host"    // files are on a different host
	Slow         Fault = "slow"          // files are sent slowly, piece by piece
	Stopped      Fault = "stopped"       // files stop halfway until Release
	OldHashes    Fault = "old-hashes"    // sums have the same names as in 2020
	HugeSize     Fault = "huge-size"     // the announced size of files is above a tebibyte
	OtherCharm   Fault = "other-charm"   // answers describe a charm that was not asked for
	NoRevision   Fault = "no-revision"   // answers have the revision 0
	BadChannel   Fault = "bad-channel"   // the channel in answers has control characters
	BadBase      Fault = "bad-base"      // a base in answers has control characters
	BadResource  Fault = "bad-resource"  // a resource in answers has the name of a path
	BadHost      Fault = "bad-host"      // files are on a host whose name has control characters
	LongCode     Fault = "long-code"     // requests are refused with an error code of a mebibyte
	Crowded      Fault = "crowded"       // answers to a search have a million results
)

// Faults lists them.
func Faults() []Fault {
	return []Fault{None, Throttled, Unavailable, Unexplained, Closed, Hangup, WrongURL, Nonsense, Cut, WrongSum, WrongSize,
		UnknownField, NullCharm, OtherHost, Slow, Stopped, OldHashes, HugeSize, OtherCharm, NoRevision, BadChannel, BadBase,
		BadResource, BadHost, LongCode, Crowded}
}

// Misbehave turns a fault on for a number of requests, or for all if times is negative.
func (s *Server) Misbehave(f Fault, times int) error {
	if !slices.Contains(Faults(), f) {
		return fmt.Errorf("there is no fault %q; there are %v", f, Faults())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault, s.left = f, times
	return nil
}

// Release continues all downloads that the fault Stopped has stopped.
func (s *Server) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.gate:
	default:
		close(s.gate)
	}
}

// applies reports whether the fault is on. If it is, it counts this request. The caller holds the lock.
func (s *Server) applies(f Fault) bool {
	if s.fault != f || s.left == 0 {
		return false
	}
	s.left--
	return true
}

// spoil answers a request according to the fault.
func (s *Server) spoil(w http.ResponseWriter) bool {
	const page = "<!DOCTYPE html><html><body><h1>Service Unavailable</h1></body></html>\n"
	s.mu.Lock()
	defer s.mu.Unlock()

	h := w.Header()
	switch {
	case s.applies(Throttled):
		h.Set("Retry-After", "1")
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusTooManyRequests)
		fmt.Fprint(w, `{"error-list": [{"code": "rate-limit-exceeded", "message": "slow down"}]}`)
	case s.applies(Closed):
		h.Set("Retry-After", "3600")
		w.WriteHeader(http.StatusTooManyRequests)
	case s.applies(Unavailable):
		h.Set("Retry-After", "1")
		h.Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, page)
	case s.applies(Unexplained):
		h.Set("Content-Type", "text/html")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, page)
	case s.applies(Hangup):
		panic(http.ErrAbortHandler)
	case s.applies(WrongURL):
		h.Set("Content-Type", "text/plain")
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, "404 page not found\n")
	case s.applies(LongCode):
		h.Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error-list": [{"code": "\u001b[31m%s", "message": ""}]}`, strings.Repeat("x", 1<<20))
	case s.applies(Crowded):
		h.Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"results": [%snull]}`, strings.Repeat("null,", 1_000_000))
	case s.applies(Nonsense):
		h.Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	default:
		return false
	}
	return true
}
