package plugin

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"bijou/provision/provider"
	"bijou/provision/provider/protocol"
)

// errClosed: the client was used after its end.
var errClosed = errors.New("the provider was closed")

// use calls the process, which it starts if there is none. A limit of 0 is none.
func (c *Client) use(ctx context.Context, limit time.Duration, call func(context.Context, protocol.ProviderClient) error) error {
	s, err := c.acquire(ctx)
	if err != nil {
		return err
	}
	defer s.calls.Done()
	limited := ctx
	if limit > 0 {
		var cancel context.CancelFunc
		limited, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	err = s.judge(ctx, limited, call(limited, s.client))
	if err != nil && ctx.Err() == nil && s.over() {
		return c.trouble(err.Error() + "; it is started again")
	}
	return err // what a provider itself says stands as it is
}

// trouble is what befell the provider's process, for operators.
func (c *Client) trouble(what string) error {
	return &failure{fmt.Sprintf("provider %q: %s", c.o.Name, what), provider.ErrTransient}
}

// take waits for the client's turn; whoever gets it gives it back.
func (c *Client) take(ctx context.Context) error {
	select {
	case c.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if c.closed {
		c.give()
		return errClosed
	}
	return nil
}

func (c *Client) give() { <-c.turn }

// acquire returns the session for what is wanted now, one call of which has begun.
func (c *Client) acquire(ctx context.Context) (*session, error) {
	wanted, err := c.o.Wanted(ctx)
	if err != nil {
		return nil, err
	}
	if err := c.take(ctx); err != nil {
		return nil, err
	}
	defer c.give()
	c.empty = false
	if s := c.current; s != nil && s.over() {
		c.mourn(s)
		c.leave()
	} else if s != nil && !s.wanted.same(wanted) {
		c.leave()
	}
	if c.current == nil {
		if err := c.renew(ctx, wanted); err != nil {
			return nil, err
		}
	}
	c.current.calls.Add(1)
	return c.current, nil
}

// renew starts a session, unless it is too early for that.
func (c *Client) renew(ctx context.Context, wanted Wanted) error {
	if !wanted.same(c.back.wanted) {
		c.back = backoff{wanted: wanted}
	}
	if err := c.back.await(ctx, time.Now()); err != nil {
		return err
	}
	sockets, err := c.o.Sockets()
	path := ""
	if err == nil {
		path, err = c.o.Find(wanted.SHA256)
	}
	if err == nil {
		c.current, err = begin(ctx, launch{path: path, wanted: wanted, sockets: sockets, limit: c.o.Patience, log: c.o.Log})
	}
	if err == nil || ctx.Err() != nil {
		return err
	}
	err = c.trouble("it does not start: " + err.Error())
	c.o.Log.Warn("provider does not start", "error", err)
	now := time.Now()
	c.back.note(now, now, err)
	return err
}

// mourn takes up that a session has ended which was not told to.
func (c *Client) mourn(s *session) {
	err := c.trouble("it ended unexpectedly (" + s.manner() + ")" + s.last() + "; it is started again")
	c.o.Log.Warn("provider ended unexpectedly", "error", err)
	c.back.note(s.began, time.Now(), err)
}

// leave has the current session end with its last call.
func (c *Client) leave() {
	c.retired.add(c.current)
	c.current = nil
}

// idle tells if there can be no instance, and ends a process that is not needed.
func (c *Client) idle(ctx context.Context, d Demand) (bool, error) {
	if err := c.take(ctx); err != nil {
		return false, err
	}
	defer c.give()
	return d == Never || d == Past && c.empty, nil
}

// rest notes that there are no instances, and ends the process.
func (c *Client) rest(ctx context.Context) error {
	if err := c.take(ctx); err != nil {
		return err
	}
	defer c.give()
	c.empty = true
	if c.current != nil {
		c.leave()
	}
	return nil
}

// same tells if a process for the one may serve the other.
func (w Wanted) same(other Wanted) bool {
	a, b := w.Environment, other.Environment
	return w.SHA256 == other.SHA256 && a.UUID == b.UUID && a.Name == b.Name && a.Dir == b.Dir &&
		a.Shared == b.Shared && maps.Equal(a.Config, b.Config)
}

// retired are sessions that end with their last call.
type retired struct {
	mu   sync.Mutex
	left map[*session]bool
	work sync.WaitGroup
}

func (r *retired) add(s *session) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left == nil {
		r.left = map[*session]bool{}
	}
	r.left[s] = true
	r.work.Go(func() {
		s.calls.Wait()
		s.end()
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.left, s)
	})
}

// end ends them all at once.
func (r *retired) end() {
	r.mu.Lock()
	for s := range r.left {
		_ = s.process.Kill(context.Background()) // its calls end, and then it does
	}
	r.mu.Unlock()
	r.work.Wait()
}
