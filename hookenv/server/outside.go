package server

import (
	"context"
	"strconv"
	"time"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// Outside answers programs that run in no hook: whoever may enter the socket's directory may have the
// unit run commands. Its methods may be called from several goroutines.
type Outside interface {
	// Identify returns whose socket this is.
	Identify() Identity
	// Enqueue has the unit run a command in its turn, and returns the command's id.
	Enqueue(ctx context.Context, c Command) (id int, err error)
	// Await returns how the unit's command has ended; ok is false if it has not when ctx is done.
	Await(ctx context.Context, id int) (end CommandEnd, ok bool, err error)
}

// Identity says which unit of which environment it is.
type Identity struct{ Unit, Environment, UUID string }

// Command is a line for a shell, about a relation where Relation is not empty.
type Command struct {
	Line          string
	Relation      string // an id in any form, or a name
	RemoteUnit    string // empty: the only one
	RemoteService string // empty: whichever it is
	Force         bool   // RemoteUnit may be no member of the relation
}

// CommandEnd is how a command has ended. Exit is its exit code; with Problem, which says why there is
// none, it is 1.
type CommandEnd struct {
	Exit           int
	Problem        string
	Stdout, Stderr []byte
	Dropped        int64 // bytes of both that were not kept
}

// awaitTimeout bounds one answer to CommandAwait: its client asks again, so that no connection is
// held for one that has gone.
const awaitTimeout = 5 * time.Second

func isFromOutside(command string) bool {
	switch command {
	case wire.CommandIdentify, wire.CommandExec, wire.CommandAwait:
		return true
	}
	return false
}

// serveOutside answers a request of a process that is no hook.
func (s *Server) serveOutside(c *conn, command string, box amp.Box) error {
	ask := box.Value(wire.KeyAsk)
	ctx, cancel := context.WithTimeout(s.open, awaitTimeout)
	defer cancel()

	pairs, refused := s.answerOutside(ctx, command, box)
	if refused != nil {
		return c.refuse(ask, *refused)
	}
	return c.reply(ask, pairs...)
}

// answerOutside answers a request from outside of hooks: which unit the socket serves, a new command for
// the unit's queue, or how such a command ended.
func (s *Server) answerOutside(ctx context.Context, command string, box amp.Box) ([]pair, *refusal) {
	switch command {
	case wire.CommandIdentify:
		return s.identify(box)
	case wire.CommandExec:
		id, err := s.outside.Enqueue(ctx, Command{
			Line:          box.Value(wire.KeyLine),
			Relation:      box.Value(wire.KeyRelation),
			RemoteUnit:    box.Value(wire.KeyRemoteUnit),
			RemoteService: box.Value(wire.KeyRemoteService),
			Force:         box.Value(wire.KeyForce) != "",
		})
		return []pair{{wire.KeyID, strconv.Itoa(id)}}, refusalOf(err)
	}

	id, err := strconv.Atoi(box.Value(wire.KeyID))
	if err != nil {
		return nil, &refusal{codeBadRequest, command + " needs the id of a command"}
	}

	end, ok, err := s.outside.Await(ctx, id)
	if err != nil || !ok {
		return []pair{{wire.KeyID, strconv.Itoa(id)}}, refusalOf(err)
	}
	return end.pairs(), nil
}

// identify answers which unit's agent this is. If the box has a hook's id, the hook must still run.
func (s *Server) identify(box amp.Box) ([]pair, *refusal) {
	if box.Has(wire.KeyClientID) {
		if _, runs := s.findHook(box.Value(wire.KeyClientID)); !runs {
			gone := goneRefusal()
			return nil, &gone
		}
	}

	i := s.outside.Identify()
	return []pair{{wire.KeyUnit, i.Unit}, {wire.KeyEnvironment, i.Environment}, {wire.KeyUUID, i.UUID}}, nil
}

func (e CommandEnd) pairs() []pair {
	return []pair{
		{wire.KeyExit, strconv.Itoa(e.Exit)},
		{wire.KeyProblem, e.Problem},
		{wire.KeyDropped, strconv.FormatInt(e.Dropped, 10)},
		{wire.KeyStderr, string(e.Stderr)},
		{wire.KeyStdout, string(e.Stdout)},
	}
}

func refusalOf(err error) *refusal {
	if err == nil {
		return nil
	}
	return &refusal{codeBadRequest, err.Error()}
}
