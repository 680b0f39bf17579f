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

// errClosed: the client was used after its end.
var errClosed = errors.New("the provider was closed")

// callProvider starts the process if there is none. A timeout of 0 is none.
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

	return err // what a provider itself says stands as it is
}

// limitCall returns a context that ends with ctx, or after timeout (0: never). It has no deadline, since
// gRPC would send it to the other side. The other side would then end the call as well, at times first,
// with an error that looks like the provider's own.
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

// lock locks the client, unless ctx is done first. It returns errClosed if the client is closed. The caller
// must unlock.
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
// necessary. It counts a call on the session, which the caller must end.
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

// renewSession starts a provider process. After failures it returns an error until it is time for another
// start.
func (c *Client) renewSession(ctx context.Context, wanted Wanted) error {
	if !wanted.equal(c.backoff.wanted) {
		c.backoff = restartBackoff{wanted: wanted}
	}
	if err := c.backoff.awaitRetry(ctx, time.Now()); err != nil {
		return err
	}

	var err error
	c.current, err = c.findAndStart(ctx, wanted)
	if err == nil || ctx.Err() != nil {
		return err
	}

	err = c.transientError("it does not start: " + err.Error())
	c.options.Log.Warn("provider does not start", "error", err)
	now := time.Now()
	c.backoff.noteEnd(now, now, err)
	return err
}

// findAndStart starts a provider process from the program of the wanted sum.
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

// noteCrash logs that the session has ended without being told to, and delays the next one.
func (c *Client) noteCrash(s *session) {
	err := c.transientError("it ended unexpectedly (" + s.exitReason() + ")" + s.lastOutput() +
		"; restarting it")
	c.options.Log.Warn("provider ended unexpectedly", "error", err)
	c.backoff.noteEnd(s.startedAt, time.Now(), err)
}

// retireSession ends the current session with its last call, or when the client is closed.
func (c *Client) retireSession() {
	s := c.current
	c.current = nil
	c.retiring.Go(func() {
		defer context.AfterFunc(c.closing, func() { _ = s.process.Kill(c.closing) })()
		s.calls.Wait()
		s.close()
	})
}

// isIdle reports whether there can be no instance.
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
	minRetryDelay = time.Second // doubles with each failure
	maxRetryDelay = time.Minute
	stableUptime  = time.Minute     // a process that lived as long starts the count anew
	maxRetryWait  = 3 * time.Second // callers block no longer
)

// restartBackoff delays the next start of a process that ended, or did not begin.
type restartBackoff struct {
	wanted   Wanted // what it is about: another is tried at once
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

// awaitRetry waits until the provider may be started again. It returns the last error at once if the wait
// would be long.
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
