package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"bijou/hookenv"
	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
	"bijou/hookenv/tools"
)

// serveBox answers one box. It returns an error only if the connection must end, for example because the client has
// violated the protocol or does not read the answer.
func (s *Server) serveBox(c *conn, box amp.Box) error {
	command := box.Value(wire.KeyCommand)
	ask := box.Value(wire.KeyAsk)
	if command == "" || ask == "" {
		return errors.New("the client sent a box without a request")
	}

	if s.outside != nil && isFromOutside(command) {
		return s.serveOutside(c, command, box)
	}

	s.log.Debug("asked", "command", command, "tool", toolName(box), "directory", box.Value(wire.KeyDirectory))
	if refused := checkBox(command, box); refused != nil {
		return c.refuse(ask, *refused)
	}

	r, ok := s.findHook(box.Value(wire.KeyClientID))
	if !ok || !r.beginCall() {
		return c.refuse(ask, goneRefusal())
	}
	if command == wire.CommandTool {
		// runTool ends the call itself.
		return s.runTool(c, r, box)
	}

	pairs, refused := runCommand(r, command, box)
	r.calls.Done()
	if refused != nil {
		return c.refuse(ask, *refused)
	}

	return c.reply(ask, pairs...)
}

// toolName returns the name of the tool in a box, for the log. It leaves out the arguments, which can be secret.
func toolName(box amp.Box) string {
	name, _, _ := strings.Cut(box.Value(wire.KeyArgv), "\x00")
	return name
}

// goneRefusal returns the answer for a client id that is unknown or has ended.
func goneRefusal() refusal { return refusal{wire.CodeUnknownClient, "hook context gone"} }

// requiredKeys returns the keys that the box of a command must have in addition to KeyClientID. known is false for an
// unknown command.
func requiredKeys(command string) (names []string, known bool) {
	switch command {
	case wire.CommandTool:
		return []string{wire.KeyArgv, wire.KeyStdin}, true
	case commandGet:
		return []string{keyUnit, keySetting}, true
	case commandSet:
		return []string{keyUnit, keyBlob}, true
	case commandList, "flush", "sync", "wait":
		// runCommand refuses the last three, which are reserved.
		return nil, true
	}

	return nil, false
}

// checkBox returns a refusal if the command is unknown, if the box lacks a key, or if the client id or an argument of a
// command of Python Juju is not UTF-8. It returns nil for a valid box. It does not check the argv of a tool, since the
// tool checks its own arguments.
func checkBox(command string, box amp.Box) *refusal {
	names, known := requiredKeys(command)
	if !known {
		return &refusal{codeBadRequest, fmt.Sprintf("unknown command %q", command)}
	}

	for _, name := range append(names, wire.KeyClientID) {
		if !box.Has(name) {
			return &refusal{codeBadRequest, fmt.Sprintf("%s needs %s", command, name)}
		}
	}

	if command == wire.CommandTool {
		return nil
	}

	for _, name := range []string{wire.KeyClientID, keyUnit, keySetting, keyBlob, keyRelation} {
		if !utf8.ValidString(box.Value(name)) {
			return &refusal{codeBadRequest, name + " is not UTF-8"}
		}
	}

	return nil
}

// runTool runs a hook tool and sends its result or, if the tool has failed and the hook has ended, goneRefusal. It
// sends no result if fetchFile has failed, since the connection must then end. It ends the call before it sends, so that
// a slow client does not delay the end of the hook.
func (s *Server) runTool(c *conn, r *registration, box amp.Box) error {
	files := &callerFiles{conn: c, ask: box.Value(wire.KeyAsk), clientID: box.Value(wire.KeyClientID)}
	result := runRecovered(func() hookenv.Result {
		return tools.Run(r.ctx, r.hook, hookenv.Call{
			Argv:  strings.Split(box.Value(wire.KeyArgv), "\x00"),
			Stdin: box.Value(wire.KeyStdin),
			Files: files,
			Now:   s.now,
		})
	})

	r.calls.Done()
	if result.Exit != 0 && r.ctx.Err() != nil { // the tool may have failed because the hook has ended
		// Answer even if the connection is lost, since a client whose file was requested still waits for this
		// answer.
		refuseErr := c.refuse(files.ask, goneRefusal())
		return cmp.Or(files.lostErr, refuseErr) // the first error is the cause
	}
	if files.lostErr != nil {
		return files.lostErr
	}

	return c.sendResult(r.ctx, files.ask, result)
}

// runRecovered runs a tool. If the tool panics, it logs the panic and returns a failed result. The agent must
// keep running, for the hook's other tools and for all other units.
func runRecovered(run func() hookenv.Result) (result hookenv.Result) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("internal error in a hook tool", "panic", p, "stack", string(debug.Stack()))
			result = hookenv.Result{Exit: 1, Stderr: []byte(fmt.Sprintf("ERROR internal error: %v\n", p))}
		}
	}()

	return run()
}

// sendResult sends a tool's result without its empty parts, with stdout last. There is no time limit, since the
// client prints stdout while it receives stdout, and the program that reads the client's output may be slow. Once
// the hook has ended, the client has writeTimeout to read the rest.
func (c *conn) sendResult(ctx context.Context, ask string, r hookenv.Result) error {
	pairs := []pair{{wire.KeyExit, strconv.Itoa(r.Exit)}}
	for _, p := range []pair{
		{wire.KeyStderr, string(r.Stderr)}, {wire.KeyWrite, r.OutputPath}, {wire.KeyStdout, string(r.Stdout)},
	} {
		if p.value != "" {
			pairs = append(pairs, p)
		}
	}

	if err := c.net.SetWriteDeadline(time.Time{}); err != nil {
		return err
	}
	stopLimiting := context.AfterFunc(ctx, func() { c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)) })
	defer stopLimiting()

	_, err := c.net.Write(encodeAnswer(ask, pairs))
	return err
}

// callerFiles reads the caller's files, which it requests from the thin client during a call.
type callerFiles struct {
	conn     *conn
	ask      string // the id of the client's last box, which waits for an answer
	clientID string
	lostErr  error // the error after which the connection cannot be used any longer
}

// Read requests a file from the client. There is no time limit, since the program that writes to stdin may be
// slow. The end of the hook ends the wait. If fetchFile fails, the connection cannot be used any longer, and
// all later calls return the same error.
func (f *callerFiles) Read(ctx context.Context, path string) ([]byte, error) {
	if f.lostErr != nil {
		return nil, f.lostErr
	}
	box, err := f.fetchFile(ctx, path)
	if err != nil {
		f.lostErr = err
		return nil, err
	}

	f.ask = box.Value(wire.KeyAsk)
	if problem := box.Value(wire.KeyProblem); problem != "" {
		return nil, errors.New(problem)
	}

	return []byte(box.Value(wire.KeyValue)), nil
}

// fetchFile sends the path to the client, and returns the box with which the client answers.
func (f *callerFiles) fetchFile(ctx context.Context, path string) (amp.Box, error) {
	if err := f.conn.reply(f.ask, pair{wire.KeyWant, path}); err != nil {
		return nil, err
	}

	box, err := f.conn.readBox(ctx, time.Time{})
	if ctx.Err() != nil {
		return nil, net.ErrClosed // the hook has ended, which serve does not log as an error
	}
	if err != nil {
		return nil, err
	}
	if box.Value(wire.KeyCommand) != wire.CommandFile || box.Value(wire.KeyClientID) != f.clientID {
		return nil, errors.New("the client sent a box without the requested file")
	}

	return box, nil
}

// The commands of Python Juju, and their arguments; see docs/dev/socket.md. Its commands flush, sync and wait are
// reserved.
const (
	commandGet  = "get"
	commandSet  = "set"
	commandList = "list_relations"

	keyUnit     = "unit_name"
	keySetting  = "setting_name"
	keyBlob     = "json_blob"
	keyRelation = "relation_id" // optional
)

// runCommand runs a command of Python Juju, which reads, writes or lists settings without a tool's command
// line. It returns the pairs of the answer, or the refusal to send instead.
func runCommand(r *registration, command string, box amp.Box) (answer []pair, refused *refusal) {
	target := tools.Target{Relation: box.Value(keyRelation), Unit: box.Value(keyUnit)}
	switch command {
	case commandGet:
		value, err := tools.GetSetting(r.ctx, r.hook, target, box.Value(keySetting))
		if err != nil {
			return nil, toRefusal(r, err)
		}
		return []pair{{wire.KeyValue, value}}, nil
	case commandSet:
		if err := tools.SetSettings(r.ctx, r.hook, target, box.Value(keyBlob)); err != nil {
			return nil, toRefusal(r, err)
		}
		return []pair{{"ok", "True"}}, nil
	case commandList:
		ids, err := tools.ListRelationIDs(r.ctx, r.hook)
		if err != nil {
			return nil, toRefusal(r, err)
		}
		members := strings.Join(r.hook.Facts().Members, " ")
		return []pair{{"relations", strings.Join(ids, " ")}, {"members", members}}, nil
	}

	return nil, &refusal{codeReserved, command + " is reserved"}
}

// toRefusal returns the refusal for the error of a command.
func toRefusal(r *registration, err error) *refusal {
	switch {
	case r.isGone(err):
		ended := goneRefusal()
		return &ended
	case errors.Is(err, tools.ErrNoKey):
		return &refusal{codeKeyError, err.Error()}
	case tools.IsCallerError(err):
		return &refusal{codeBadRequest, err.Error()}
	}

	return &refusal{codeInternal, err.Error()}
}
