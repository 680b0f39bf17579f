package release

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Kind is why a source does not hand out what it was asked for.
type Kind string

// The kinds.
const (
	Unauthorized Kind = "unauthorized" // 401: it wants a user or a token, or others
	Forbidden    Kind = "forbidden"    // 403: what it was given is not enough
	Missing      Kind = "missing"      // 404 or 410: there is no such repository, folder or file
	Limited      Kind = "limited"      // 429, or GitHub's rate limit: it was asked too often
	Faulty       Kind = "faulty"       // 5xx, or an answer that nobody expects
	NoReleases   Kind = "no-releases"  // 200, with something else than releases: a login page, say
	LaterFormat  Kind = "later-format" // only a later version of this program reads its index
	Unreachable  Kind = "unreachable"  // no answer: no route, no name, a silent server
	// Misconfigured: nobody was asked, since the configuration says in no readable way where releases are.
	Misconfigured Kind = "misconfigured"
)

// SourceError is the error of a source of releases that does not hand out what it was asked for.
type SourceError struct {
	Kind       Kind
	RetryAfter time.Duration // for how long it asks to be left alone; 0: it does not say
	NotBefore  time.Time     // until when; zero: it does not say
	Err        error
}

// Error returns the text of the error within.
func (e SourceError) Error() string { return e.Err.Error() }

// Unwrap returns the error within.
func (e SourceError) Unwrap() error { return e.Err }

func kindOfStatus(code int) Kind {
	switch code {
	case http.StatusUnauthorized, http.StatusProxyAuthRequired:
		return Unauthorized
	case http.StatusForbidden:
		return Forbidden
	case http.StatusNotFound, http.StatusGone:
		return Missing
	case http.StatusTooManyRequests:
		return Limited
	}

	return Faulty
}

// answerError returns the error for an unexpected answer.
func answerError(resp *http.Response) SourceError {
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After")) // a date counts as not said
	return SourceError{
		Kind:       kindOfStatus(resp.StatusCode),
		RetryAfter: time.Duration(max(0, seconds)) * time.Second,
		Err:        fmt.Errorf("the server answers %s", resp.Status),
	}
}

// The shortest and the longest time after which a source that failed is asked again.
const (
	minDelay = time.Second
	maxDelay = time.Hour
)

// Delay returns how long to leave the source alone after its n-th failure in a row, from 1: as long
// as it asks to be, where it does, else longer each time, up to longest.
func Delay(err error, n int, longest time.Duration, now time.Time) time.Duration {
	failed, _ := errors.AsType[SourceError](err)
	if !failed.NotBefore.IsZero() {
		return min(max(failed.NotBefore.Sub(now), minDelay), maxDelay)
	}
	if failed.RetryAfter > 0 {
		return min(max(failed.RetryAfter, minDelay), maxDelay)
	}

	return max(minDelay, min(minDelay<<min(max(n, 1)-1, 12), longest))
}
