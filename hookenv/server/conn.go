package server

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"bijou/hookenv/amp"
	"bijou/hookenv/client"
)

// conn is one connection: boxes in, boxes out, in turn.
type conn struct {
	net     net.Conn
	limits  limits
	now     func() time.Time
	decoder amp.Decoder
	chunk   []byte
}

// serve answers a connection's boxes until it ends or is cut off. What one connection does wrong
// never ends another.
func (s *Server) serve(raw net.Conn) {
	defer s.dropConn(raw)
	c := &conn{
		net: raw, limits: s.limits, now: s.now,
		decoder: amp.Decoder{Limit: s.limits.maxBox}, chunk: make([]byte, 16<<10),
	}
	first := c.now().Add(c.limits.firstBoxTimeout)
	for {
		box, err := c.readBox(context.Background(), first)
		if err == nil {
			s.markWaiting(raw, false)
			err = s.serveBox(c, box)
			s.markWaiting(raw, true)
		}
		if err != nil {
			s.logEnd(err)
			return
		}
		first = time.Time{}
	}
}

// An end that the client or Close wanted is not logged.
func (s *Server) logEnd(err error) {
	if errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) {
		return
	}
	s.log.Warn("cut off a hook tool", "error", err)
}

// The first byte must come by a deadline (zero: at any time), and the rest soon after it. readBox
// ends with ctx.
func (c *conn) readBox(ctx context.Context, first time.Time) (amp.Box, error) {
	defer context.AfterFunc(ctx, func() { c.net.SetReadDeadline(time.Unix(1, 0)) })()
	deadline := first
	for begun := false; ; {
		box, err := c.decoder.Next()
		if err != nil || box != nil {
			return box, err
		}
		if c.decoder.Pending() && !begun {
			begun, deadline = true, c.now().Add(c.limits.boxTimeout)
		}
		if err := c.net.SetReadDeadline(deadline); err != nil {
			return nil, err
		}
		if ctx.Err() != nil { // it may have set its deadline before ours
			return nil, ctx.Err()
		}
		n, err := c.net.Read(c.chunk)
		c.decoder.Feed(c.chunk[:n])
		if n == 0 && err != nil {
			return nil, c.endError(err)
		}
	}
}

func (c *conn) endError(err error) error {
	if errors.Is(err, io.EOF) && c.decoder.Pending() {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A client that does not take the box is cut off.
func (c *conn) writeBox(box []byte) error {
	if err := c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)); err != nil {
		return err
	}
	_, err := c.net.Write(box)
	return err
}

// The AMP error codes beside client.CodeUnknownClient. AMP itself knows UNKNOWN,
// for what is the server's own trouble.
const (
	codeBadRequest = "BAD_REQUEST"
	codeKeyError   = "KEY_ERROR"
	codeReserved   = "RESERVED"
	codeInternal   = "UNKNOWN"
)

// refusal is an AMP error as an answer.
type refusal struct{ code, text string }

// pair is a key of an answer with its value.
type pair struct{ key, value string }

func (c *conn) reply(ask string, pairs ...pair) error { return c.writeBox(encodeAnswer(ask, pairs)) }

func encodeAnswer(ask string, pairs []pair) []byte {
	box := amp.Append(nil, client.KeyAnswer, ask)
	for _, p := range pairs {
		box = amp.Append(box, p.key, p.value)
	}
	return amp.End(box)
}

func (c *conn) refuse(ask string, r refusal) error {
	box := amp.Append(nil, client.KeyError, ask)
	box = amp.Append(box, client.KeyErrorCode, r.code)
	box = amp.Append(box, client.KeyErrorText, r.text)
	return c.writeBox(amp.End(box))
}
