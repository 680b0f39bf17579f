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

// errClosed is returned if the client is used after Close.
var errClosed = errors.New("the provider was closed")

// callProvider calls the provider's process, and starts the process if none is running. A timeout of 0
// means no timeout.
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
	err = s.explainCall(ctx, limited, call(limited, s.client))
	if err != nil && ctx.Err() == nil && s.hasEnded() {
		return c.transientError(err.Error() + "; restarting it")
	}

	// An error of the provider itself is returned unchanged.
	return err
}

// limitCall returns a context that ends with ctx, or after timeout if that is not 0. The context has no
// deadline, since gRPC would send the deadline to the provider. The provider would then also end the call,
// sometimes first, with an error that looks like one of the provider's own.
func limitCall(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	limited, cancel := context.WithCancel(context.WithoutCancel(ctx))
	release := context.AfterFunc(ctx, cancel)
	if timeout <= 0 {
		return limited, func() { release(); cancel() }
	}

	timer := time.AfterFunc(timeout, cancel)
	return limited, func() { timer.Stop(); release(); cancel() }
}

func (c *Client) transientError(what string) error {
	return &providerError{fmt.Sprintf("provider %q: %s", c.options.Name, what), provider.ErrTransient}
}

// lock locks the client. It returns an error if ctx is done first, and errClosed if the client is closed.
// The caller must call unlock.
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

// acquireSession returns a session with a running provider process of the wanted kind, and starts one if
// necessary. It adds one to the WaitGroup calls of the session. The caller must call its Done when the call
// has ended.
func (c *Client) acquireSession(ctx context.Context) (*session, error) {
	wanted, err := c.options.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.lock(ctx); err != nil {
		return nil, err
	}
	defer c.unlock()

	c.knownEmpty = false
	if s := c.current; s != nil && s.hasEnded() {
		c.noteCrash(s)
		c.retireSession()
	} else if s != nil && !s.wanted.equal(wanted) {
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

// renewSession starts a provider process. After failures it returns an error until the next start is due.
func (c *Client) renewSession(ctx context.Context, wanted Wanted) error {
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
	if ctx.Err() != nil {
		return err
	}

	err = c.transientError("the provider does not start: " + err.Error())
	c.options.Log.Warn("provider does not start", "error", err)
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

// retireSession ends the current session after its last call, or when the client is closed.
func (c *Client) retireSession() {
	s := c.current
	c.current = nil
	c.retiring.Go(func() {
		defer context.AfterFunc(c.closing, func() { _ = s.process.Kill(c.closing) })()
		s.calls.Wait()
		s.close()
	})
}

// isIdle reports whether no instance can exist.
func (c *Client) isIdle(ctx context.Context, d Demand) (bool, error) {
	if err := c.lock(ctx); err != nil {
		return false, err
	}
	defer c.unlock()
	return d == Never || d == Past && c.knownEmpty, nil
}

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

func (w Wanted) equal(other Wanted) bool {
	a := w.Environment
	b := other.Environment
	return w.SHA256 == other.SHA256 && a.UUID == b.UUID && a.Name == b.Name && a.Dir == b.Dir &&
		a.Shared == b.Shared && maps.Equal(a.Config, b.Config)
}

const (
	minRetryDelay = time.Second // doubled after each failure
	maxRetryDelay = time.Minute
	stableUptime  = time.Minute     // the uptime after which the count of failures starts again
	maxRetryWait  = 3 * time.Second // how long callers block at most
)

// restartBackoff delays the next start of a process that has ended or could not start.
type restartBackoff struct {
	wanted   Wanted // a process of a different kind is started at once
	failures int
	due      time.Time
	lastErr  error
}

func (b *restartBackoff) noteEnd(began, now time.Time, why error) {
	if now.Sub(began) >= stableUptime {
		b.failures = 0
	}
	b.due = now.Add(min(minRetryDelay<<min(b.failures, 10), maxRetryDelay))
	b.failures++
	b.lastErr = why
}

// awaitRetry waits until the provider can be started again. If the wait would be longer than maxRetryWait, it
// returns the last error at once.
func (b *restartBackoff) awaitRetry(ctx context.Context, now time.Time) error {
	left := b.due.Sub(now)
	if left > maxRetryWait {
		return b.lastErr
	}
	if left <= 0 {
		return nil
	}

	return backoff.Sleep(ctx, left)
}
