package server

import (
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

// serveBox answers one box. It returns an error only if the connection must end, because its client breaks
// the protocol or does not listen.
func (s *Server) serveBox(c *conn, box amp.Box) error {
	command := box.Value(wire.KeyCommand)
	ask := box.Value(wire.KeyAsk)
	if command == "" || ask == "" {
		return errors.New("a box that asks for nothing")
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
		return s.runTool(c, r, box)
	}

	pairs, refused := runCommand(r, command, box)
	r.calls.Done()
	if refused != nil {
		return c.refuse(ask, *refused)
	}

	return c.reply(ask, pairs...)
}

// toolName returns the tool's name from a box, for the log. Arguments may be secret, and are left out.
func toolName(box amp.Box) string {
	name, _, _ := strings.Cut(box.Value(wire.KeyArgv), "\x00")
	return name
}

func goneRefusal() refusal { return refusal{wire.CodeUnknownClient, "hook context gone"} }

// requiredKeys returns the keys that a command's box must have; known is false for other commands.
func requiredKeys(command string) (names []string, known bool) {
	switch command {
	case wire.CommandTool:
		return []string{wire.KeyArgv, wire.KeyStdin}, true
	case commandGet:
		return []string{keyUnit, keySetting}, true
	case commandSet:
		return []string{keyUnit, keyBlob}, true
	case commandList, "flush", "sync", "wait":
		return nil, true
	}

	return nil, false
}

// checkBox returns a refusal if the command is unknown, or if the box lacks a key or has one that is not
// UTF-8. The tool itself checks its argv.
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

// runTool runs a hook tool and sends its result. The call counts as done before the result is sent, so that
// a slow reader does not hold up the end of the hook.
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
	if result.Exit != 0 && r.ctx.Err() != nil {
		err := c.refuse(files.ask, goneRefusal()) // the client waits for it, also where its file was asked for
		if files.lost != nil {
			return files.lost
		}
		return err
	}

	if files.lost != nil {
		return files.lost
	}

	return c.sendResult(r.ctx, files.ask, result)
}

// runRecovered runs a tool. A panic is logged and fails only this call, since the agent serves hundreds of
// units and all other tools of this hook.
func runRecovered(run func() hookenv.Result) (result hookenv.Result) {
	defer func() {
		if p := recover(); p != nil {
			slog.Error("internal error in a hook tool", "panic", p, "stack", string(debug.Stack()))
			result = hookenv.Result{Exit: 1, Stderr: []byte(fmt.Sprintf("ERROR internal error: %v\n", p))}
		}
	}()

	return run()
}

// sendResult sends a tool's result. It sends stdout last: the client passes stdout on as it comes, and
// takes as long as its own reader does. Once the hook ends the client has writeTimeout left.
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
	defer context.AfterFunc(ctx, func() { c.net.SetWriteDeadline(c.now().Add(c.limits.writeTimeout)) })()
	_, err := c.net.Write(encodeAnswer(ask, pairs))
	return err
}

// callerFiles asks the thin client for the caller's files, in the middle of its call.
type callerFiles struct {
	conn     *conn
	ask      string // the box that waits for an answer
	clientID string
	lost     error // the connection is of no more use
}

// Read asks the client to read a file and send it. There is no time limit, since the writer of stdin may be
// slow, but the end of the hook ends the wait.
func (f *callerFiles) Read(ctx context.Context, path string) ([]byte, error) {
	if f.lost != nil {
		return nil, f.lost
	}
	box, err := f.fetchFile(ctx, path)
	if err != nil {
		f.lost = err
		return nil, err
	}

	f.ask = box.Value(wire.KeyAsk)
	if problem := box.Value(wire.KeyProblem); problem != "" {
		return nil, errors.New(problem)
	}

	return []byte(box.Value(wire.KeyValue)), nil
}

// fetchFile asks the caller for a file's content: only the caller can open it.
func (f *callerFiles) fetchFile(ctx context.Context, path string) (amp.Box, error) {
	if err := f.conn.reply(f.ask, pair{wire.KeyWant, path}); err != nil {
		return nil, err
	}

	box, err := f.conn.readBox(ctx, time.Time{})
	switch {
	case ctx.Err() != nil:
		return nil, net.ErrClosed // the hook has ended; that is nobody's fault
	case err != nil:
		return nil, err
	case box.Value(wire.KeyCommand) != wire.CommandFile || box.Value(wire.KeyClientID) != f.clientID:
		return nil, errors.New("a box that is not the file asked for")
	}

	return box, nil
}

// Python Juju's commands and their arguments (docs/dev/socket.md). Its flush, sync
// and wait are reserved.
const (
	commandGet  = "get"
	commandSet  = "set"
	commandList = "list_relations"

	keyUnit     = "unit_name"
	keySetting  = "setting_name"
	keyBlob     = "json_blob"
	keyRelation = "relation_id" // optional
)

// runCommand runs one of the older commands, which get, set and list settings without a tool's command line.
func runCommand(r *registration, command string, box amp.Box) ([]pair, *refusal) {
	target := tools.Target{Relation: box.Value(keyRelation), Unit: box.Value(keyUnit)}
	switch command {
	case commandGet:
		value, err := tools.GetSetting(r.ctx, r.hook, target, box.Value(keySetting))
		return []pair{{wire.KeyValue, value}}, toRefusal(r, err)
	case commandSet:
		err := tools.SetSettings(r.ctx, r.hook, target, box.Value(keyBlob))
		return []pair{{"ok", "True"}}, toRefusal(r, err)
	case commandList:
		ids, err := tools.ListRelationIDs(r.ctx, r.hook)
		members := strings.Join(r.hook.Facts().Members, " ")
		return []pair{{"relations", strings.Join(ids, " ")}, {"members", members}}, toRefusal(r, err)
	}

	return nil, &refusal{codeReserved, command + " is reserved"}
}

// toRefusal returns the refusal for a command's error, or nil.
func toRefusal(r *registration, err error) *refusal {
	switch {
	case err == nil:
		return nil
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
