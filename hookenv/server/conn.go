package server

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"bijou/hookenv/amp"
)

// conn is one connection: boxes in, boxes out, in turn.
type conn struct {
	net     net.Conn
	limits  limits
	now     func() time.Time
	decoder amp.Decoder
	chunk   []byte
}

// serve answers a connection's boxes until the connection ends, or is cut off after an error. An error of
// one connection never ends a different one.
func (s *Server) serve(raw net.Conn) {
	defer s.dropConn(raw)
	c := &conn{
		net:     raw,
		limits:  s.limits,
		now:     s.now,
		decoder: amp.Decoder{Limit: s.limits.maxBox},
		chunk:   make([]byte, 16<<10),
	}

	err := s.serveNext(c, c.now().Add(c.limits.firstBoxTimeout))
	for err == nil {
		err = s.serveNext(c, time.Time{})
	}

	isWanted := errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) // by the client or Close
	if !isWanted {
		s.log.Warn("cut off a hook tool", "error", err)
	}
}

// serveNext reads a box, which must begin before beginBy (zero: at any time), and answers it.
func (s *Server) serveNext(c *conn, beginBy time.Time) error {
	box, err := c.readBox(context.Background(), beginBy)
	if err != nil {
		return err
	}

	s.markWaiting(c.net, false)
	err = s.serveBox(c, box)
	s.markWaiting(c.net, true)
	return err
}

// readBox reads one box. Its first byte must come before beginBy (zero: at any time), and the rest within
// boxTimeout after that. If ctx ends while it waits, it returns ctx's error.
func (c *conn) readBox(ctx context.Context, beginBy time.Time) (amp.Box, error) {
	// A deadline in the past wakes a Read that waits.
	defer context.AfterFunc(ctx, func() { c.net.SetReadDeadline(time.Unix(1, 0)) })()
	deadline := beginBy

	for begun := false; ; {
		box, err := c.decoder.Next()
		if err != nil || box != nil {
			return box, err
		}

		if c.decoder.Pending() && !begun {
			begun = true
			deadline = c.now().Add(c.limits.boxTimeout)
		}

		if err := c.net.SetReadDeadline(deadline); err != nil {
			return nil, err
		}
		if ctx.Err() != nil { // it may have set its deadline before ours
			return nil, ctx.Err()
		}

		n, err := c.net.Read(c.chunk)
		c.decoder.Feed(c.chunk[:n])
		if errors.Is(err, io.EOF) && c.decoder.Pending() {
			err = io.ErrUnexpectedEOF
		}
		if n == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if n == 0 && err != nil {
			return nil, err
		}
	}
}

// writeBox sends a box. It cuts off a client that does not take it in time.
func (c *conn) writeBox(box []byte) error {
	if err := c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)); err != nil {
		return err
	}
	_, err := c.net.Write(box)
	return err
}
