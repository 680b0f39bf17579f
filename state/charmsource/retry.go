package charmsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	maxTries      = 3
	busyDelay     = 10 * time.Second // the wait before a retry if a busy store does not set one
	cutOffDelay   = 3 * time.Second  // the wait before a retry if the connection was cut
	maxRetryAfter = 10 * time.Minute // the longest wait before a retry
)

// busyError is the error of a store that is busy, so that a retry can help.
type busyError struct {
	host   string
	status string
	after  time.Duration // how long the store asks to wait; negative if it does not set a time
}

// Error names the store's host and the status of its response.
func (e *busyError) Error() string {
	return fmt.Sprintf("%s answers %.100q", e.host, e.status)
}

// Unwrap returns ErrAway, since a busy store counts as one that cannot be reached.
func (e *busyError) Unwrap() error { return ErrAway }

// checkBusy returns a *busyError if a retry after this response can help.
func checkBusy(resp *http.Response) error {
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return &busyError{
			host:   resp.Request.URL.Host,
			status: resp.Status,
			after:  retryAfter(resp.Header.Get("Retry-After"), time.Now()),
		}
	}
	return nil
}

// retryAfter parses the header Retry-After, which has seconds or a date (RFC 9110, 10.2.3). It returns a negative
// duration if the header is invalid or missing.
func retryAfter(text string, now time.Time) time.Duration {
	// The limit of 2^30 seconds, 34 years, keeps the product within a Duration.
	if n, err := strconv.Atoi(strings.TrimSpace(text)); err == nil && n >= 0 {
		return time.Duration(min(n, 1<<30)) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(0, at.Sub(now))
	}
	return -1
}

// cutOffError is returned if the connection ended before the end of the response.
type cutOffError struct{ error }

// Unwrap returns the error with the text.
func (e cutOffError) Unwrap() error { return e.error }

// away returns the error for a request that failed with err, without a whole response. host is the host of the
// request, and limit is how long the request waits for the response. If the request was cancelled, the error
// wraps context.Canceled. Otherwise it is ErrAway and names the host. It is also a cutOffError if the connection
// was cut.
func away(host string, limit time.Duration, err error) error {
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err
		// After a redirect, this is a different host.
		if at, parseErr := url.Parse(wrapped.URL); parseErr == nil && at.Host != "" {
			host = at.Host
		}
	}

	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return cutOffError{awayf("%s closed the connection before it had answered", host)}
	case errors.Is(err, context.DeadlineExceeded):
		// The dialer has its own limit.
		if _, isDial := errors.AsType[*net.OpError](err); isDial {
			limit = min(limit, requestTimeout)
		}
		return awayf("%s did not answer within %s", host, limit)
	case errors.Is(err, context.Canceled):
		return err
	}
	return awayf("cannot reach %s: %w", host, err)
}

// retry calls f until f succeeds, up to maxTries times, as long as a retry can help. It calls c.notify before each
// wait. It returns the last error, or ctx's error. If the wait before the next try would be longer than
// maxRetryAfter, retry gives up, and adds the time at which the user can retry to the error.
func (c *Charmhub) retry(ctx context.Context, f func(ctx context.Context) error) error {
	for n := 1; ; n++ {
		err := f(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}

		delay, canHelp := retryDelay(err)
		if !canHelp || n == maxTries {
			return err
		}
		if delay > maxRetryAfter {
			return fmt.Errorf("%w; retry at %s", err,
				time.Now().Add(delay).Format("15:04:05 on 2006-01-02"))
		}

		c.notify(fmt.Sprintf("%v: retry in %s", err, delay.Round(time.Second)))
		if err := c.sleep(ctx, delay); err != nil {
			return err
		}
	}
}

// retryDelay returns how long to wait before a retry after err. canHelp is false if a retry cannot help, and the
// delay then has no meaning.
func retryDelay(err error) (delay time.Duration, canHelp bool) {
	if busy, ok := errors.AsType[*busyError](err); ok {
		if busy.after < 0 {
			return busyDelay, true
		}
		return busy.after, true
	}

	_, isCutOff := errors.AsType[cutOffError](err)
	return cutOffDelay, isCutOff
}
