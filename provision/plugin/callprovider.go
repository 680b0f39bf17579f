package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
	"bijou/state/backoff"
)

// errClosed means that the client is used after Close.
var errClosed = errors.New("the provider was closed")

// callProvider runs call with a client of the provider's process, and starts the process if none is running.
// It returns the provider's own error if the process is still running, and a transient error if the process
// ends during the call. If the process does not answer within the timeout, or the connection breaks,
// callProvider kills the process, and also returns a transient error. A timeout of 0 means no timeout. If ctx
// ends the call, callProvider returns the error of ctx.
func (c *Client) callProvider(
	ctx context.Context,
	timeout time.Duration,
	call func(context.Context, protocol.ProviderClient) error,
) error {
	s, err := c.acquireSession(ctx)
	if err != nil {
		return err
	}
	defer s.calls.Done()

	limited, cancel := limitCall(ctx, timeout)
	defer cancel()
	callErr := s.explainCall(ctx, limited, call(limited, s.client))
	if callErr == nil {
		return nil
	}
	if ctx.Err() != nil {
		return callErr
	}
	// The next call starts a new process.
	if s.hasEnded() {
		return c.transientError(callErr.Error() + "; restarting it")
	}

	return callErr
}

// limitCall returns a context that ends with ctx, or after timeout if timeout is not 0. The caller must call
// the returned function.
//
// The context has no deadline, since gRPC would send the deadline to the provider. The provider would then
// also end the call, sometimes first, with an error that looks like one of the provider's own.
func limitCall(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stopWatching := context.AfterFunc(ctx, cancel)
	if timeout <= 0 {
		return limited, func() {
			stopWatching()
			cancel()
		}
	}

	timer := time.AfterFunc(timeout, cancel)
	return limited, func() {
		timer.Stop()
		stopWatching()
		cancel()
	}
}

// transientError returns an error that wraps provider.ErrTransient. Its text names the provider.
func (c *Client) transientError(what string) error {
	return &providerError{fmt.Sprintf("provider %q: %s", c.options.Name, what), provider.ErrTransient}
}

// lock locks the client. It returns an error if ctx is done first, and errClosed if the client is closed. If
// it returns nil, the caller must call unlock.
func (c *Client) lock(ctx context.Context) error {
	select {
	case c.mu <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}

	if c.closing.Err() != nil {
		c.unlock()
		return errClosed
	}

	return nil
}

func (c *Client) unlock() { <-c.mu }

// acquireSession returns a session for one call, with a running provider process that the options want now. It
// starts a process if necessary. The caller must call calls.Done of the session after its call.
func (c *Client) acquireSession(ctx context.Context) (*session, error) {
	wanted, err := c.options.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()

	// The call may create an instance.
	c.knownEmpty = false

	if c.current != nil && c.current.hasEnded() {
		c.noteCrash(c.current)
		c.retireSession()
	}
	if c.current != nil && !c.current.wanted.equal(wanted) {
		c.retireSession()
	}

	if c.current == nil {
		if err := c.renewSession(ctx, wanted); err != nil {
			return nil, err
		}
	}

	c.current.calls.Add(1)
	return c.current, nil
}

// renewSession starts a provider process as the current session. After a failed start or a crash, it first
// waits until the next start is due. If that wait would be longer than maxRetryWait, it returns the error of
// the failure at once, and starts nothing. The caller holds the lock.
func (c *Client) renewSession(ctx context.Context, wanted Wanted) error {
	// The failures of a different executable or environment do not delay this start.
	if !wanted.equal(c.backoff.wanted) {
		c.backoff = restartBackoff{wanted: wanted}
	}
	if err := c.backoff.awaitRetry(ctx, time.Now()); err != nil {
		return err
	}

	s, err := c.findAndStart(ctx, wanted)
	if err == nil {
		c.current = s
		return nil
	}
	// The caller gave up, so the failure shows nothing about the provider.
	if ctx.Err() != nil {
		return err
	}

	err = c.transientError("the provider does not start: " + err.Error())
	c.options.Log.Warn("provider does not start", "error", err)

	// A process that does not start has an uptime of 0.
	now := time.Now()
	c.backoff.noteEnd(now, now, err)
	return err
}

// findAndStart starts a provider process from the executable with the wanted digest.
func (c *Client) findAndStart(ctx context.Context, wanted Wanted) (*session, error) {
	sockets, err := c.options.Sockets()
	if err != nil {
		return nil, err
	}
	path, err := c.options.Find(wanted.SHA256)
	if err != nil {
		return nil, err
	}

	return startSession(ctx, sessionOptions{
		path:    path,
		wanted:  wanted,
		sockets: sockets,
		timeout: c.options.CallTimeout,
		log:     c.options.Log,
	})
}

// noteCrash logs that the session's process has ended unexpectedly, and delays the next start.
func (c *Client) noteCrash(s *session) {
	err := c.transientError("the provider ended unexpectedly (" + s.exitReason() + ")" + s.lastOutput() +
		"; restarting it")
	c.options.Log.Warn("provider ended unexpectedly", "error", err)
	c.backoff.noteEnd(s.startedAt, time.Now(), err)
}

// retireSession makes the current session end in the background: after its last call, or at once when the
// client is closed. Afterwards there is no current session. The caller holds the lock.
func (c *Client) retireSession() {
	s := c.current
	c.current = nil
	c.retiring.Go(func() {
		stopWatching := context.AfterFunc(c.closing, func() { _ = s.process.Kill(c.closing) })
		defer stopWatching()
		s.calls.Wait()
		s.close()
	})
}

// isIdle reports whether no instance can exist. If there are no machines any more, it returns true only after
// the process has listed no instances. It returns an error if ctx is done, or if the client is closed.
func (c *Client) isIdle(ctx context.Context, d Demand) (bool, error) {
	if err := c.lock(ctx); err != nil {
		return false, err
	}
	defer c.unlock()

	switch d {
	case Never:
		return true, nil
	case Past:
		return c.knownEmpty, nil
	}

	return false, nil
}

// noteEmpty records that no instance exists, and retires the current session, since no process is needed until the
// next call. It returns an error if ctx is done, or if the client is closed.
func (c *Client) noteEmpty(ctx context.Context) error {
	if err := c.lock(ctx); err != nil {
		return err
	}
	defer c.unlock()
	c.knownEmpty = true
	if c.current != nil {
		c.retireSession()
	}

	return nil
}

// equal reports whether the same process can serve both.
func (w Wanted) equal(other Wanted) bool {
	a := w.Environment
	b := other.Environment
	sameEnvironment := a.UUID == b.UUID && a.Name == b.Name && a.Dir == b.Dir && a.Shared == b.Shared
	return sameEnvironment && w.SHA256 == other.SHA256 && maps.Equal(a.Config, b.Config)
}

const (
	minRetryDelay = time.Second // doubled after each failure
	maxRetryDelay = time.Minute
	stableUptime  = time.Minute     // the uptime after which the count of failures starts again
	maxRetryWait  = 3 * time.Second // how long callers block at most
)

// restartBackoff delays the next start of a process that has ended unexpectedly or could not start.
type restartBackoff struct {
	wanted   Wanted    // the process that is delayed; a different one is started at once
	failures int       // without an uptime of stableUptime in between
	due      time.Time // when the process can be started again
	lastErr  error     // the reason of the last failure
}

// noteEnd records that a process, started at the time began, has ended at the time now because of why. The delay
// doubles with each failure, and is short again after a process that ran for stableUptime.
func (b *restartBackoff) noteEnd(began, now time.Time, why error) {
	if now.Sub(began) >= stableUptime {
		b.failures = 0
	}
	// The bound of the shift prevents an overflow.
	b.due = now.Add(min(minRetryDelay<<min(b.failures, 10), maxRetryDelay))
	b.failures++
	b.lastErr = why
}

// awaitRetry waits until the provider can be started again. If the wait would be longer than maxRetryWait, it
// returns the error of the last failure at once. It returns the error of ctx if ctx is done first.
func (b *restartBackoff) awaitRetry(ctx context.Context, now time.Time) error {
	wait := b.due.Sub(now)
	if wait > maxRetryWait {
		return b.lastErr
	}
	if wait <= 0 {
		return nil
	}

	return backoff.Sleep(ctx, wait)
}
