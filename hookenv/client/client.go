// Package client is the thin client that every symlinked hook tool is: it sends
// argv to the agent's socket, reads and writes the caller's files when asked,
// prints what comes back and exits with the code that comes back. It parses
// nothing of a tool's grammar; the tools run in the agent (hookenv).
//
// Its init is the program's only hand-written one, because a hook calls tools by the hundred: when
// argv[0] is a hook tool and a client id is at hand, the process does its work here and exits
// before the other packages initialise. Go initialises packages that are ready in the order of
// their import paths, and "bijou/..." comes before "github.com/...". That is worth 3 ms of 5 a
// call, and it holds only as long as this package imports nothing but os, syscall, strconv,
// hookenv/amp and its own rooms early and wire.
//
// multicall imports it for the calls without a client id, hookenv/server for
// the words of the protocol.
package client

import (
	"os"
	"syscall"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/early"
	"bijou/hookenv/client/wire"
)

func init() {
	if IsTool(os.Args[0]) && clientID(os.Args) != "" {
		os.Exit(Run(os.Args))
	}
}

// IsTool reports whether argv0, a name or a path, is that of a hook tool.
func IsTool(argv0 string) bool {
	name := baseName(argv0)
	for rest := wire.ToolNames; rest != ""; {
		var first string
		first, rest, _ = cutByte(rest, ' ')
		if first == name {
			return true
		}
	}

	return false
}

// Run runs one tool through the agent's socket, argv[0] included, with the process's own
// descriptors, and returns the exit code. init calls it; others do for calls without a client id or
// under another argv[0].
func Run(argv []string) int {
	id := clientID(argv)
	if begun, ok := early.TakeOver(); ok {
		return goOn(begun, id)
	}
	if id == "" {
		return fail("no client id: hook tools run in hooks and under juju do (JUJU_CLIENT_ID is not set)")
	}

	path := findOption(argv, "--socket", "--socket")
	if path == "" {
		path = os.Getenv("JUJU_SOCKET")
	}
	if path == "" {
		return fail("cannot connect to the agent: JUJU_SOCKET is not set")
	}

	c, err := dial(path)
	if err != nil {
		return fail("cannot connect to " + path + ": " + err.Error())
	}
	defer syscall.Close(c.fd)

	return c.exchange(encodeRequest(argv, id), id)
}

// goOn continues a conversation that began before Go's runtime.
func goOn(begun early.Conversation, id string) int {
	c := &conn{fd: begun.FD, decoder: amp.Decoder{Limit: maxAnswer}, printed: begun.Printed, ahead: begun.Ahead}
	c.decoder.Feed(begun.Received)
	return c.exchange(begun.Unsent, id)
}

// encodeRequest returns the box that asks the agent to run the tool.
func encodeRequest(argv []string, id string) []byte {
	cwd, _ := syscall.Getwd() // a directory that is gone has no name, and the agent only logs it
	box := amp.Append(nil, wire.KeyCommand, wire.CommandTool)
	box = amp.Append(box, wire.KeyAsk, "1")
	box = amp.Append(box, wire.KeyClientID, id)
	box = amp.Append(box, wire.KeyArgv, joinArgs(argv))
	box = amp.Append(box, wire.KeyDirectory, cwd)
	box = amp.Append(box, wire.KeyStdin, stdinKind())
	return amp.End(box)
}

// exchange sends the request, sends each file that the agent asks for, prints the answer, and returns the
// exit code.
func (c *conn) exchange(request []byte, id string) int {
	err := c.send(request)
	for err == nil {
		answer := answer{box: amp.Box{}, printed: c.printed}
		if err = c.receive(answer.addPair); err != nil {
			break
		}

		switch {
		case answer.box.Value(wire.KeyErrorCode) == wire.CodeUnknownClient:
			return fail("hook context gone")
		case answer.box.Has(wire.KeyErrorCode):
			return fail(answer.box.Value(wire.KeyErrorText))
		case !answer.box.Has(wire.KeyWant):
			return answer.finish()
		}
		err = c.sendFile(answer.box.Value(wire.KeyWant), id)
	}

	return fail("cannot hear from the agent: " + err.Error())
}

// sendFile sends the content of a file to the agent, in chunks, or the problem with it. It reads the whole
// file first, since a file that comes slowly must not leave a box half sent.
func (c *conn) sendFile(path, id string) error {
	box := amp.Append(nil, wire.KeyCommand, wire.CommandFile)
	box = amp.Append(box, wire.KeyAsk, "1")
	box = amp.Append(box, wire.KeyClientID, id)
	data, problem := readFile(path, c.ahead)
	c.ahead = nil
	if problem != "" {
		return c.send(amp.End(amp.Append(box, wire.KeyProblem, problem)))
	}

	for i := 0; i == 0 || len(data) > 0; i++ {
		part := data[:min(len(data), amp.MaxValue)]
		if err := c.send(amp.Append(box, amp.ChunkKey(wire.KeyValue, i), string(part))); err != nil {
			return err
		}
		box = box[:0]
		data = data[len(part):]
	}

	return c.send(amp.End(box))
}

// conn is the connection to the agent: a blocking descriptor, since a process
// that does one thing needs no poller.
type conn struct {
	fd      int
	decoder amp.Decoder
	printed int    // bytes of the next answer that the early client has printed
	ahead   []byte // the beginning of the next file, which the early client has read
}

// dial connects to the agent's socket, without the net package, which would cost each tool's start.
func dial(path string) (*conn, error) {
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}

	for {
		err = syscall.Connect(fd, &syscall.SockaddrUnix{Name: path})
		if err != syscall.EINTR {
			break
		}
	}

	if err != nil {
		syscall.Close(fd)
		return nil, err
	}

	return &conn{fd: fd, decoder: amp.Decoder{Limit: maxAnswer}}, nil
}

// send sends a box. It returns no error if the agent has closed the connection: an agent that refuses a
// request may close before it has read all, and its answer is worth reading then.
func (c *conn) send(box []byte) error {
	err := writeAll(c.fd, box)
	if err == syscall.EPIPE || err == syscall.ECONNRESET {
		return nil
	}
	return err
}

// receive reads one box and calls take for each pair. take must not keep the slices.
func (c *conn) receive(take func(key, value []byte)) error {
	chunk := make([]byte, 32<<10)
	for {
		key, value, err := c.decoder.Pair()
		switch {
		case err != nil:
			return err
		case key == nil:
			if err := c.readMore(chunk); err != nil {
				return err
			}
		case len(key) == 0:
			return nil
		default:
			take(key, value)
		}
	}
}

// readMore feeds the decoder with the next bytes from the agent.
func (c *conn) readMore(chunk []byte) error {
	n, err := readSome(c.fd, chunk)
	// Closed with something of ours unread, a socket is "reset".
	if err == nil && n == 0 || err == syscall.ECONNRESET {
		err = amp.Error("it closed the connection")
	}
	if err != nil {
		return err
	}

	c.decoder.Feed(chunk[:n])
	return nil
}
