package server

import (
	"context"
	"strconv"
	"time"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// Outside serves programs that do not run in a hook. Every user who can enter the socket's directory can run
// commands as the unit. Several goroutines can call its methods at once.
type Outside interface {
	// Identify returns the unit to which the socket belongs.
	Identify() Identity
	// Enqueue adds a command to the unit's queue, and returns the command's id.
	Enqueue(ctx context.Context, c Command) (id int, err error)
	// Await waits for the end of the unit's command, and returns its result. If ctx is done first, ok is false.
	Await(ctx context.Context, id int) (end CommandEnd, ok bool, err error)
}

// Identity identifies a unit. Environment and UUID are the name and the UUID of the unit's environment.
type Identity struct{ Unit, Environment, UUID string }

// Command is a command for a unit. If Relation is set, it runs in that relation, as a relation hook does.
type Command struct {
	Line          string // a line for a shell
	Relation      string // the relation's id in any form, or its name; or empty
	RemoteUnit    string // the remote unit; if empty, the relation must have only one remote unit
	RemoteService string // if set, the relation's remote service must be this one
	Force         bool   // RemoteUnit need not be a member of the relation
}

// CommandEnd is the result of a command that has ended.
type CommandEnd struct {
	Exit           int    // the exit code, or 1 if Problem is set
	Problem        string // why the command has failed, if not by its own exit code
	Stdout, Stderr []byte
	Dropped        int64 // bytes of both outputs that were not kept
}

// awaitTimeout limits one request from outside. If a command has not ended by then, the answer to CommandAwait says
// so, and the client sends a new request. So the server does not keep a connection open for a client that is gone.
const awaitTimeout = 5 * time.Second

// isFromOutside reports whether only programs outside of hooks send this AMP command.
func isFromOutside(command string) bool {
	switch command {
	case wire.CommandIdentify, wire.CommandExec, wire.CommandAwait:
		return true
	}
	return false
}

// serveOutside answers a request of a program outside of hooks. The request ends after awaitTimeout, or when the
// server closes.
func (s *Server) serveOutside(c *conn, command string, box amp.Box) error {
	ask := box.Value(wire.KeyAsk)
	ctx, cancel := context.WithTimeout(s.ctx, awaitTimeout)
	defer cancel()

	pairs, refused := s.answerOutside(ctx, command, box)
	if refused != nil {
		return c.refuse(ask, *refused)
	}
	return c.reply(ask, pairs...)
}

// answerOutside returns the answer to a request from outside of hooks, or a refusal. It panics for a command that
// isFromOutside does not accept.
func (s *Server) answerOutside(ctx context.Context, command string, box amp.Box) ([]pair, *refusal) {
	switch command {
	case wire.CommandIdentify:
		return s.identify(box)
	case wire.CommandExec:
		return s.enqueue(ctx, box)
	case wire.CommandAwait:
		return s.await(ctx, box)
	}

	panic("internal error: unknown command " + command)
}

// identify answers CommandIdentify. If the box has a client id, it refuses the request unless the hook with
// this id is still running.
func (s *Server) identify(box amp.Box) ([]pair, *refusal) {
	if box.Has(wire.KeyClientID) {
		if _, isRunning := s.findHook(box.Value(wire.KeyClientID)); !isRunning {
			gone := goneRefusal()
			return nil, &gone
		}
	}

	identity := s.outside.Identify()
	return []pair{
		{wire.KeyUnit, identity.Unit},
		{wire.KeyEnvironment, identity.Environment},
		{wire.KeyUUID, identity.UUID},
	}, nil
}

// enqueue answers CommandExec. It adds the command in the box to the unit's queue, and returns the command's id.
func (s *Server) enqueue(ctx context.Context, box amp.Box) ([]pair, *refusal) {
	id, err := s.outside.Enqueue(ctx, Command{
		Line:          box.Value(wire.KeyLine),
		Relation:      box.Value(wire.KeyRelation),
		RemoteUnit:    box.Value(wire.KeyRemoteUnit),
		RemoteService: box.Value(wire.KeyRemoteService),
		Force:         box.Value(wire.KeyForce) != "",
	})
	if err != nil {
		return nil, &refusal{codeBadRequest, err.Error()}
	}

	return []pair{{wire.KeyID, strconv.Itoa(id)}}, nil
}

// await answers CommandAwait. It returns the command's result or, if ctx is done before the command ends, only its id.
func (s *Server) await(ctx context.Context, box amp.Box) ([]pair, *refusal) {
	id, err := strconv.Atoi(box.Value(wire.KeyID))
	if err != nil {
		return nil, &refusal{codeBadRequest, wire.CommandAwait + " needs the id of a command"}
	}

	end, ended, err := s.outside.Await(ctx, id)
	if err != nil {
		return nil, &refusal{codeBadRequest, err.Error()}
	}
	if !ended {
		return []pair{{wire.KeyID, strconv.Itoa(id)}}, nil
	}
	return end.pairs(), nil
}

// pairs returns the result as the pairs of an answer.
func (e CommandEnd) pairs() []pair {
	return []pair{
		{wire.KeyExit, strconv.Itoa(e.Exit)},
		{wire.KeyProblem, e.Problem},
		{wire.KeyDropped, strconv.FormatInt(e.Dropped, 10)},
		{wire.KeyStderr, string(e.Stderr)},
		{wire.KeyStdout, string(e.Stdout)},
	}
}
