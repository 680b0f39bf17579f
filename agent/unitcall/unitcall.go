// Package unitcall implements juju-exec. Through the socket of a unit's agent, it requests that a unit on
// this host runs a command. The agent queues the command, as for `juju exec`.
//
// The package does not read the state or the caller's environment variables, and it does not parse arguments.
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

// Request is a request to run a command.
type Request struct {
	Unit        string // the unit; if empty, the host must have only one unit
	Environment string // the environment's name or UUID; if empty, only one environment on the host can have the unit
	Line        string // the command, a line for a shell

	Relation      string // the relation in which the command runs, if any: an id in any form, or a name
	RemoteUnit    string
	RemoteService string
	Force         bool // run the command even if RemoteUnit is not a member of the relation
}

// End is the result of a command that has ended.
type End struct {
	Exit           int
	Problem        string // why the command has failed, if Exit is not the command's own exit code
	Stdout, Stderr string
	Dropped        int64 // bytes of both outputs that were not kept
}

// Errors of [Run] and [CheckHook].
var (
	ErrNotFound  = errors.New("not found on this machine")
	ErrAmbiguous = errors.New("several models on this machine have this unit")
	ErrInHook    = errors.New("the command would wait for this hook to end")
)

const (
	// callTimeout limits one request to an agent. An agent can delay its answer to CommandAwait, but for less
	// time than this.
	callTimeout = 30 * time.Second
	// interruptGrace is how long Run still waits for the id of its command after ctx is done.
	interruptGrace = 2 * time.Second
	// awayTimeout limits how long a caller retries while an agent is unreachable, for example while a new
	// binary replaces it.
	awayTimeout = time.Minute
)

// CheckHook returns ErrInHook if the caller runs in a hook that has not ended. Such a caller must not call [Run],
// since the command would wait for the end of the hook. socket and contextID are the agent's socket and the
// hook's id in the caller's environment.
//
// CheckHook returns nil if contextID is empty, if it cannot connect to the socket, or if the agent answers that
// the hook has ended. So a daemon that a hook has started can run commands. In all other cases the hook may still
// be running, and CheckHook returns ErrInHook.
func CheckHook(socket, contextID string) error {
	if contextID == "" {
		return nil
	}

	_, err := call(context.Background(), socket, wire.CommandIdentify, wire.KeyClientID, contextID)
	var refused refusal
	hookEnded := errors.As(err, &refused) && refused.code == wire.CodeUnknownClient
	if hookEnded || isGone(err) {
		return nil
	}

	return fmt.Errorf("cannot be called from within a hook, have context %q: %w", contextID, ErrInHook)
}

// isGone reports whether the caller could not connect to the socket, for example because no process serves it.
func isGone(err error) bool {
	var dialing *net.OpError
	return errors.As(err, &dialing) && dialing.Op == "dial"
}

// Run asks the unit's agent to run the command, and returns the command's result once it has ended. Run returns
// ErrNotFound if no agent that answers matches the request, and ErrAmbiguous if several environments have the
// request's unit. If the request has no unit and several units match, Run returns a different error.
//
// When ctx is done, Run returns an error within interruptGrace. If the agent has answered with the command's id,
// the error contains the id. A queued command continues, as in Juju, since the command itself may end its caller.
func Run(ctx context.Context, r Request) (End, error) {
	a, err := findAgent(ctx, r)
	if err != nil {
		return End{}, err
	}

	force := ""
	if r.Force {
		force = "yes"
	}

	// An interrupt must not end this short call immediately: without the answer, Run cannot name the command
	// that continues.
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stopGrace := context.AfterFunc(ctx, func() { time.AfterFunc(interruptGrace, cancel) })
	defer stopGrace()

	answer, err := call(callCtx, a.socket, wire.CommandExec, wire.KeyLine, r.Line,
		wire.KeyRelation, r.Relation, wire.KeyRemoteUnit, r.RemoteUnit,
		wire.KeyRemoteService, r.RemoteService, wire.KeyForce, force)
	if err != nil {
		return End{}, fmt.Errorf("cannot run on unit %q: %w", a.unit, err)
	}

	return await(ctx, a, answer.Value(wire.KeyID))
}

// unitAgent is a unit's agent that has answered.
type unitAgent struct{ socket, unit, environment, uuid string }

// findAgent asks the agents of this user on this host for their identity, and returns the only agent that matches
// the request's unit and environment. If there is not exactly one, it returns the error of chooseAgent. If ctx is
// done, it returns ctx's error.
func findAgent(ctx context.Context, r Request) (unitAgent, error) {
	var found []unitAgent
	for _, socket := range agent.UnitSockets(r.Unit) {
		answer, err := call(ctx, socket, wire.CommandIdentify)
		if err != nil {
			// Skip the socket: it may have no server, or its agent may not support CommandIdentify.
			continue
		}

		a := unitAgent{
			socket:      socket,
			unit:        answer.Value(wire.KeyUnit),
			environment: answer.Value(wire.KeyEnvironment),
			uuid:        answer.Value(wire.KeyUUID),
		}
		matchesEnvironment := r.Environment == "" || r.Environment == a.environment || r.Environment == a.uuid
		matchesUnit := r.Unit == "" || r.Unit == a.unit
		if matchesEnvironment && matchesUnit {
			found = append(found, a)
		}
	}

	// Once ctx is done, no agent has time to answer, so nothing is known about the units.
	if err := ctx.Err(); err != nil {
		return unitAgent{}, err
	}
	return chooseAgent(r, found)
}

// chooseAgent returns the only agent that was found. It returns ErrNotFound if none was found. It returns
// ErrAmbiguous if several were found for the request's unit, and a different error if the request has no unit.
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

// await polls the agent until the command with this id has ended, and returns the command's result. If the
// agent does not answer, await retries for up to awayTimeout, since the next agent continues the unit's
// queue. No agent runs a command twice. If ctx is done, await returns an error that contains the id.
func await(ctx context.Context, a unitAgent, id string) (End, error) {
	lastAnswer := time.Now()
	for ctx.Err() == nil {
		answer, err := call(ctx, a.socket, wire.CommandAwait, wire.KeyID, id)
		var refused refusal
		if errors.As(err, &refused) { // the agent has answered, so a retry cannot help
			return End{}, fmt.Errorf("cannot find out the result of command %s of unit %q: %w", id, a.unit, err)
		}
		if err != nil {
			if time.Since(lastAnswer) > awayTimeout {
				return End{}, fmt.Errorf("cannot find out the result of command %s of unit %q: the unit's agent does not answer: %w",
					id, a.unit, err)
			}
			_ = backoff.Sleep(ctx, 100*time.Millisecond) // if ctx is done, the loop ends
			continue
		}

		lastAnswer = time.Now()
		if answer.Has(wire.KeyExit) { // only if the command has ended
			return decodeEnd(answer)
		}
	}

	return End{}, fmt.Errorf("stopped waiting for command %s of unit %q; the command continues; to end it: juju cancel-task %[1]s",
		id, a.unit)
}

// decodeEnd parses an agent's answer about a command that has ended.
func decodeEnd(answer amp.Box) (End, error) {
	exit, err := strconv.Atoi(answer.Value(wire.KeyExit))
	if err != nil {
		return End{}, fmt.Errorf("the agent's answer has no exit code: %w", err)
	}
	dropped, err := strconv.ParseInt(answer.Value(wire.KeyDropped), 10, 64)
	if err != nil {
		return End{}, fmt.Errorf("the agent's answer has no number of dropped output bytes: %w", err)
	}

	return End{
		Exit:    exit,
		Problem: answer.Value(wire.KeyProblem),
		Stdout:  answer.Value(wire.KeyStdout),
		Stderr:  answer.Value(wire.KeyStderr),
		Dropped: dropped,
	}, nil
}

// refusal is an error with which an agent answers.
type refusal struct{ code, text string }

// Error returns the text of the agent's error.
func (r refusal) Error() string { return r.text }

// maxAnswer limits the size of an answer, in bytes. An agent keeps 1 MiB of each of a command's two outputs.
const maxAnswer = 4 << 20

// call sends one request to an agent, and returns the answer. pairs are the keys and values of the request,
// in turn. call returns a refusal if the agent answers with an error, and a different error if it gets no complete
// answer, at the latest when ctx is done or callTimeout has passed.
func call(ctx context.Context, socket, command string, pairs ...string) (amp.Box, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()

	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	stopWatching := context.AfterFunc(ctx, func() { conn.Close() }) // ends a blocked Read or Write
	defer stopWatching()

	box := amp.Append(nil, wire.KeyCommand, command)
	box = amp.Append(box, wire.KeyAsk, "1") // the number of the only request on this connection
	for i := 0; i < len(pairs); i += 2 {
		box = amp.Append(box, pairs[i], pairs[i+1])
	}
	if _, err := conn.Write(amp.End(box)); err != nil {
		return nil, fmt.Errorf("cannot send a request to the agent: %w", err)
	}

	return readAnswer(conn)
}

// readAnswer reads the agent's answer, which is one box. It returns a refusal if the box contains an error.
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

		// The box is not complete yet.
		n, err := conn.Read(chunk)
		decoder.Feed(chunk[:n])
		if n == 0 && err != nil {
			return nil, fmt.Errorf("cannot read the agent's answer: %w", err)
		}
	}
}
