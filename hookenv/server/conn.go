package server

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"bijou/hookenv/amp"
)

// conn is one connection. It receives one box at a time, and answers it with one box.
type conn struct {
	net     net.Conn
	limits  limits
	now     func() time.Time
	decoder amp.Decoder
	chunk   []byte
}

// serve answers the boxes of a connection until the client or the server closes it, or until an error. An error ends
// only this connection.
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
		// The next box can begin at any time. If other clients need the slot, closeIdle ends the wait.
		err = s.serveNext(c, time.Time{})
	}

	// EOF comes from the client. ErrClosed comes from Close, closeIdle, or a hook that has ended during a call.
	isExpected := errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
	if !isExpected {
		s.log.Warn("disconnected a hook tool", "error", err)
	}
}

// serveNext reads a box and answers it. The box must begin before beginBy, unless that is zero.
func (s *Server) serveNext(c *conn, beginBy time.Time) error {
	box, err := c.readBox(context.Background(), beginBy)
	if err != nil {
		return err
	}

	s.markWaiting(c.net, false) // closeIdle must not close the connection while its request is answered
	err = s.serveBox(c, box)
	s.markWaiting(c.net, true)
	return err
}

// readBox reads one box. The first byte must arrive before beginBy, unless that is zero. The rest must arrive within
// boxTimeout after the first byte. When ctx is done while readBox waits, it returns ctx's error.
func (c *conn) readBox(ctx context.Context, beginBy time.Time) (amp.Box, error) {
	// A deadline in the past wakes a waiting Read.
	stopWaking := context.AfterFunc(ctx, func() { c.net.SetReadDeadline(time.Unix(1, 0)) })
	defer stopWaking()

	deadline := beginBy
	begun := false
	for {
		box, err := c.decoder.Next()
		if err != nil {
			return box, err
		}
		if box != nil {
			return box, nil
		}

		if c.decoder.Pending() && !begun {
			begun = true
			deadline = c.now().Add(c.limits.boxTimeout)
		}
		if err := c.readChunk(ctx, deadline); err != nil {
			return nil, err
		}
	}
}

// readChunk waits for bytes until the deadline, unless that is zero, and feeds them to the decoder. It returns
// io.ErrUnexpectedEOF if the connection ends within a box. If no bytes have arrived and ctx is done, it returns ctx's
// error.
func (c *conn) readChunk(ctx context.Context, deadline time.Time) error {
	if err := c.net.SetReadDeadline(deadline); err != nil {
		return err
	}
	// If ctx was done before, this deadline has replaced the deadline with which readBox wakes Read.
	if ctx.Err() != nil {
		return ctx.Err()
	}

	n, err := c.net.Read(c.chunk)
	c.decoder.Feed(c.chunk[:n])
	switch {
	case n > 0:
		return nil // an error repeats at the next read
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF) && c.decoder.Pending():
		return io.ErrUnexpectedEOF
	}

	return err
}

// writeBox sends a box. It returns an error if it cannot write all of the box within writeTimeout.
func (c *conn) writeBox(box []byte) error {
	if err := c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)); err != nil {
		return err
	}
	_, err := c.net.Write(box)
	return err
}
