package server

import (
	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// The AMP error codes, in addition to [wire.CodeUnknownClient]. AMP itself defines UNKNOWN, for errors of the server.
const (
	codeBadRequest = "BAD_REQUEST"
	codeKeyError   = "KEY_ERROR"
	codeReserved   = "RESERVED"
	codeInternal   = "UNKNOWN"
)

// refusal is an answer that reports an error.
type refusal struct{ code, text string }

// pair is a key of an answer, and its value.
type pair struct{ key, value string }

// reply answers the request with the id ask.
func (c *conn) reply(ask string, pairs ...pair) error { return c.writeBox(encodeAnswer(ask, pairs)) }

// encodeAnswer returns the box of an answer to the request with the id ask.
func encodeAnswer(ask string, pairs []pair) []byte {
	box := amp.Append(nil, wire.KeyAnswer, ask)
	for _, p := range pairs {
		box = amp.Append(box, p.key, p.value)
	}
	return amp.End(box)
}

// refuse answers the request with the id ask with an error.
func (c *conn) refuse(ask string, r refusal) error {
	box := amp.Append(nil, wire.KeyError, ask)
	box = amp.Append(box, wire.KeyErrorCode, r.code)
	box = amp.Append(box, wire.KeyErrorText, r.text)
	return c.writeBox(amp.End(box))
}
