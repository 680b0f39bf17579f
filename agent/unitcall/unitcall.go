// Package unitcall is what juju-exec does: it has a unit of this host run a command, by the socket of
// the unit's agent. The agent runs it in the unit's turn, as `juju exec` would; this package reads no
// state, and needs no variable of the caller's environment.
//
// It parses no arguments. Only multicall imports it.
package unitcall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"bijou/agent"
	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
	"bijou/state/backoff"
)

// Request says which unit runs what.
type Request struct {
	Unit        string // empty: the only one of this host
	Environment string // its name or uuid; empty: the only one that has such a unit
	Line        string // for a shell

	Relation      string // that the command is about: an id in any form, or a name; empty: none
	RemoteUnit    string
	RemoteService string
	Force         bool // RemoteUnit may be no member
}

// End is how the command has ended. Problem says why it has failed where its exit code does not.
type End struct {
	Exit           int
	Problem        string
	Stdout, Stderr string
	Dropped        int64 // bytes of both that were not kept
}

// Errors of [Run] and [CheckHook], for hints.
var (
	ErrNotFound  = errors.New("not found on this machine")
	ErrAmbiguous = errors.New("several models on this machine have it")
	ErrInHook    = errors.New("it would wait for that very hook to end")
)

const (
	// callTimeout bounds one question to an agent, beyond the time that it may hold an answer back.
	callTimeout = 30 * time.Second
	// awayTimeout is how long an agent may be away, as while another binary takes its place.
	awayTimeout = time.Minute
)

// CheckHook returns ErrInHook if the hook with that context id still runs under the agent of the socket.
// Its command would wait for the hook's end. A daemon that an earlier hook left behind may call.
func CheckHook(socket, contextID string) error {
	if contextID == "" {
		return nil
	}

	_, err := call(context.Background(), socket, wire.CommandIdentify, wire.KeyClientID, contextID)
	var refused refusal
	if errors.As(err, &refused) && refused.code == wire.CodeUnknownClient || isGone(err) {
		return nil
	}
	return fmt.Errorf("cannot be called from within a hook, have context %q: %w", contextID, ErrInHook)
}

// isGone reports whether nobody serves the socket.
func isGone(err error) bool {
	var dialing *net.OpError
	return errors.As(err, &dialing) && dialing.Op == "dial"
}

// Run asks the unit's agent to run the command, and waits for its end. It returns ErrNotFound or ErrAmbiguous
// if the request fits no unit or several. When ctx is done, Run returns an error without waiting. The command
// goes on as in Juju, since it may have ended its own caller.
func Run(ctx context.Context, r Request) (End, error) {
	a, err := findAgent(ctx, r)
	if err != nil {
		return End{}, err
	}

	force := ""
	if r.Force {
		force = "yes"
	}
	box, err := call(ctx, a.socket, wire.CommandExec, wire.KeyLine, r.Line,
		wire.KeyRelation, r.Relation, wire.KeyRemoteUnit, r.RemoteUnit,
		wire.KeyRemoteService, r.RemoteService, wire.KeyForce, force)
	if err != nil {
		return End{}, fmt.Errorf("cannot run on unit %q: %w", a.unit, err)
	}

	return await(ctx, a, box.Value(wire.KeyID))
}

// unitAgent is a unit's agent that has answered.
type unitAgent struct{ socket, unit, environment, uuid string }

// findAgent asks each socket of a unit's agent on this machine who serves it, and chooses the one that is
// meant.
func findAgent(ctx context.Context, r Request) (unitAgent, error) {
	var found []unitAgent
	for _, socket := range agent.UnitSockets(r.Unit) {
		box, err := call(ctx, socket, wire.CommandIdentify)
		if err != nil {
			continue // nobody serves it, or no agent that knows of this
		}

		a := unitAgent{
			socket:      socket,
			unit:        box.Value(wire.KeyUnit),
			environment: box.Value(wire.KeyEnvironment),
			uuid:        box.Value(wire.KeyUUID),
		}
		isMeant := r.Environment == "" || r.Environment == a.environment || r.Environment == a.uuid
		if isMeant && (r.Unit == "" || r.Unit == a.unit) {
			found = append(found, a)
		}
	}

	return chooseAgent(r, found)
}

// chooseAgent returns the only agent that was found, or an error that says how to name one.
func chooseAgent(r Request, found []unitAgent) (unitAgent, error) {
	switch {
	case len(found) == 1:
		return found[0], nil
	case len(found) == 0 && r.Unit == "":
		return unitAgent{}, fmt.Errorf("a unit was %w", ErrNotFound)
	case len(found) == 0 && r.Environment != "":
		return unitAgent{}, fmt.Errorf("unit %q of model %q %w", r.Unit, r.Environment, ErrNotFound)
	case len(found) == 0:
		return unitAgent{}, fmt.Errorf("unit %q %w", r.Unit, ErrNotFound)
	}

	var names []string
	for _, a := range found {
		names = append(names, fmt.Sprintf("%s of %s (%s)", a.unit, a.environment, a.uuid))
	}
	if r.Unit == "" {
		return unitAgent{}, fmt.Errorf("no unit given, and this machine has several: %s", strings.Join(names, ", "))
	}
	return unitAgent{}, fmt.Errorf("ambiguous unit %q: %w: %s", r.Unit, ErrAmbiguous, strings.Join(names, ", "))
}

// await polls the agent until the command has ended. It waits until awayTimeout for an agent that does not
// answer, since the next agent takes over the unit's queue and runs no command twice.
func await(ctx context.Context, a unitAgent, id string) (End, error) {
	heard := time.Now()
	for ctx.Err() == nil {
		box, err := call(ctx, a.socket, wire.CommandAwait, wire.KeyID, id)
		var refused refusal
		switch {
		case errors.As(err, &refused):
			return End{}, fmt.Errorf("cannot find out the result of command %s of unit %q: %w", id, a.unit, err)
		case err != nil && time.Since(heard) > awayTimeout:
			return End{}, fmt.Errorf("cannot find out the result of command %s of unit %q: its agent is away: %w",
				id, a.unit, err)
		case err != nil:
			_ = backoff.Sleep(ctx, 100*time.Millisecond)
			continue
		}

		heard = time.Now()
		if box.Has(wire.KeyExit) {
			return decodeEnd(box)
		}
	}

	return End{}, fmt.Errorf("no longer waiting for command %s of unit %q, which goes on: juju cancel-action %[1]s ends it",
		id, a.unit)
}

// decodeEnd parses an agent's answer about a command that has ended.
func decodeEnd(box amp.Box) (End, error) {
	exit, err := strconv.Atoi(box.Value(wire.KeyExit))
	if err != nil {
		return End{}, fmt.Errorf("the agent's answer has no exit code: %w", err)
	}
	dropped, err := strconv.ParseInt(box.Value(wire.KeyDropped), 10, 64)
	if err != nil {
		return End{}, fmt.Errorf("the agent's answer lacks the number of missing bytes of output: %w", err)
	}

	return End{
		Exit:    exit,
		Problem: box.Value(wire.KeyProblem),
		Stdout:  box.Value(wire.KeyStdout),
		Stderr:  box.Value(wire.KeyStderr),
		Dropped: dropped,
	}, nil
}

// refusal is an agent's answer that says no.
type refusal struct{ code, text string }

func (r refusal) Error() string { return r.text }

// maxAnswer bounds an answer, in bytes: an agent keeps 1 MiB of each of a command's two outputs.
const maxAnswer = 4 << 20

// call asks an agent one question. It returns a refusal if the agent says no.
func call(ctx context.Context, socket, command string, pairs ...string) (amp.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()

	box := amp.Append(nil, wire.KeyCommand, command)
	box = amp.Append(box, wire.KeyAsk, "1")
	for i := 0; i < len(pairs); i += 2 {
		box = amp.Append(box, pairs[i], pairs[i+1])
	}
	if _, err := conn.Write(amp.End(box)); err != nil {
		return nil, fmt.Errorf("cannot ask the agent: %w", err)
	}

	return readAnswer(conn)
}

// readAnswer reads the box with which the agent answers.
func readAnswer(conn net.Conn) (amp.Box, error) {
	decoder := amp.Decoder{Limit: maxAnswer}
	chunk := make([]byte, 64<<10)

	for {
		box, err := decoder.Next()
		if err != nil {
			return nil, fmt.Errorf("cannot read the agent's answer: %w", err)
		}
		if box.Has(wire.KeyErrorCode) {
			return nil, refusal{box.Value(wire.KeyErrorCode), box.Value(wire.KeyErrorText)}
		}
		if box != nil {
			return box, nil
		}

		n, err := conn.Read(chunk)
		decoder.Feed(chunk[:n])
		if n == 0 && err != nil {
			return nil, fmt.Errorf("cannot read the agent's answer: %w", err)
		}
	}
}
