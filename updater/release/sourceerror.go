package release

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Kind classifies the failures of a source.
type Kind string

// The kinds of failures.
const (
	Unauthorized Kind = "unauthorized" // 401 or 407: the credentials are missing or wrong
	Forbidden    Kind = "forbidden"    // 403: the credentials do not allow access
	Missing      Kind = "missing"      // 404 or 410: the repository, directory or file does not exist
	Limited      Kind = "limited"      // 429, or GitHub's rate limit: there were too many requests
	Faulty       Kind = "faulty"       // 5xx, or an unexpected answer
	NoReleases   Kind = "no-releases"  // 200 with something other than releases, such as a login page
	LaterFormat  Kind = "later-format" // the index can be read only by a later version of this program
	Unreachable  Kind = "unreachable"  // no answer: no route, no name, or a silent server
	// Misconfigured means that no request was sent, since the configuration of the source cannot be read.
	Misconfigured Kind = "misconfigured"
)

// SourceError is a failure of a source of releases.
type SourceError struct {
	Kind       Kind
	RetryAfter time.Duration // the delay that the source requests, or 0
	NotBefore  time.Time     // the time before which the source must not be queried again, or zero
	Err        error
}

// Error returns the text of Err.
func (e SourceError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e SourceError) Unwrap() error { return e.Err }

// kindOfStatus returns the kind of failure for the HTTP status of an unexpected answer.
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

// answerError returns the error for an unexpected answer, with the delay that the answer requests in seconds.
func answerError(resp *http.Response) SourceError {
	// The header can be missing or contain a date. In both cases, seconds is 0.
	seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
	return SourceError{
		Kind:       kindOfStatus(resp.StatusCode),
		RetryAfter: time.Duration(max(0, seconds)) * time.Second,
		Err:        fmt.Errorf("the server answers %s", resp.Status),
	}
}

// The limits of the delay after which a failed source is queried again.
const (
	minDelay = time.Second
	maxDelay = time.Hour
)

// Delay returns how long to wait before the next query of the source, after its n-th consecutive failure,
// counted from 1. err is the error of that failure. If err is a [SourceError] with a delay that the source
// requests, Delay returns that delay, within minDelay and maxDelay. Otherwise the delay grows with n, from
// minDelay up to longest.
func Delay(err error, n int, longest time.Duration, now time.Time) time.Duration {
	// For an error of another type, sourceErr is zero, and requests no delay.
	sourceErr, _ := errors.AsType[SourceError](err)
	if !sourceErr.NotBefore.IsZero() {
		return min(max(sourceErr.NotBefore.Sub(now), minDelay), maxDelay)
	}
	if sourceErr.RetryAfter > 0 {
		return min(max(sourceErr.RetryAfter, minDelay), maxDelay)
	}

	// The delay doubles with each failure. This many doublings exceed maxDelay, and do not overflow.
	const maxDoublings = 12
	doublings := min(max(n, 1)-1, maxDoublings)
	return max(minDelay, min(minDelay<<doublings, longest))
}
