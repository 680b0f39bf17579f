// Package client is the thin client that runs under the name of each hook tool. It sends argv to the agent's
// socket, and reads and writes the caller's files when the agent requests them. It prints the agent's answer,
// and exits with the answer's exit code. It does not parse a tool's options. The tools run in the agent
// (hookenv).
//
// The package has the only hand-written init function of the program, since a hook can call hundreds of tools, and
// each call must be fast. If argv[0] is a hook tool and there is a client id, init does the work and exits before the
// other packages are initialized. This saves 3 of 5 ms per call. It works since Go initializes packages in the order
// of their import paths once their imports are initialized, and "bijou/..." comes before "github.com/...". So this
// package can import only os, syscall, strconv, hookenv/amp, and its subpackages early and wire.
package client

import (
	"os"
	"syscall"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/early"
	"bijou/hookenv/client/wire"
)

// init runs the hook tool if this process is one, and exits. The package comment says why.
func init() {
	if IsTool(os.Args[0]) && clientID(os.Args) != "" {
		os.Exit(Run(os.Args))
	}
}

// IsTool reports whether argv0 is the name or path of a hook tool.
func IsTool(argv0 string) bool {
	called := baseName(argv0)
	for remaining := wire.ToolNames; remaining != ""; {
		var name string
		name, remaining, _ = cutByte(remaining, ' ')
		if name == called {
			return true
		}
	}

	return false
}

// Run runs a tool through the agent's socket, with the process's own files, and returns the exit code. argv
// includes argv[0]. Without a client id it prints an error. init calls Run only for a hook tool with a client id. Other
// packages can also call it without a client id, or with an argv[0] that differs from the process's own.
func Run(argv []string) int {
	id := clientID(argv)
	// Package early may have begun the call before Go's runtime started.
	if begun, ok := early.TakeOver(); ok {
		return continueConversation(begun, id)
	}
	if id == "" {
		return fail("no client id: hook tools run in hooks and under juju do (JUJU_CLIENT_ID is not set)")
	}

	path := findOption(argv, "--socket", "--socket") // this option has only one name
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

// continueConversation continues a conversation that package early has begun, and returns the exit code.
func continueConversation(begun early.Conversation, id string) int {
	c := &conn{fd: begun.FD, decoder: amp.Decoder{Limit: maxAnswer}, printed: begun.Printed, ahead: begun.Ahead}
	c.decoder.Feed(begun.Received)
	return c.exchange(begun.Unsent, id)
}

// encodeRequest returns the box with the request to run the tool.
func encodeRequest(argv []string, id string) []byte {
	cwd, _ := syscall.Getwd() // fails if the directory is gone; the agent only logs it
	box := amp.Append(nil, wire.KeyCommand, wire.CommandTool)
	box = amp.Append(box, wire.KeyAsk, "1") // the request's id; the client sends one request at a time
	box = amp.Append(box, wire.KeyClientID, id)
	box = amp.Append(box, wire.KeyArgv, joinArgs(argv))
	box = amp.Append(box, wire.KeyDirectory, cwd)
	box = amp.Append(box, wire.KeyStdin, stdinKind())
	return amp.End(box)
}

// exchange sends the request, sends each file that the agent requests, prints the last answer, and returns the exit
// code. If the agent refuses the request, or if the connection fails, it prints an error and returns 1.
func (c *conn) exchange(request []byte, id string) int {
	if err := c.send(request); err != nil {
		return failTransport(err)
	}

	for {
		// Only the last answer has output, so bytes that were already printed belong to it.
		a := answer{box: amp.Box{}, printed: c.printed}
		if err := c.receive(a.addPair); err != nil {
			return failTransport(err)
		}

		switch {
		case a.box.Value(wire.KeyErrorCode) == wire.CodeUnknownClient:
			return fail("hook context gone")
		case a.box.Has(wire.KeyErrorCode):
			return fail(a.box.Value(wire.KeyErrorText))
		case !a.box.Has(wire.KeyWant):
			return a.finish()
		}
		if err := c.sendFile(a.box.Value(wire.KeyWant), id); err != nil {
			return failTransport(err)
		}
	}
}

// failTransport calls [fail] for an error of the connection to the agent.
func failTransport(err error) int {
	return fail("cannot receive an answer from the agent: " + err.Error())
}

// sendFile sends the content of a file to the agent, in chunks, or the reason why the file cannot be read. It reads
// the whole file first, so that a slow read does not leave a box half sent.
func (c *conn) sendFile(path, id string) error {
	box := amp.Append(nil, wire.KeyCommand, wire.CommandFile)
	box = amp.Append(box, wire.KeyAsk, "1")
	box = amp.Append(box, wire.KeyClientID, id)
	data, problem := readFile(path, c.ahead)
	c.ahead = nil // the next file does not begin with these bytes
	if problem != "" {
		return c.send(amp.End(amp.Append(box, wire.KeyProblem, problem)))
	}

	// An empty file is sent as one empty chunk. The first chunk also sends the pairs that are already in box.
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

// conn is the connection to the agent. Its descriptor is blocking, since the process does one thing at a time.
type conn struct {
	fd      int
	decoder amp.Decoder
	printed int    // bytes of the next answer that the early client has already printed
	ahead   []byte // the beginning of the next file, which the early client has already read
}

// dial connects to the agent's socket. It does not use package net, which would make every tool start more slowly.
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

// send sends a box. It returns nil if the agent has closed the connection. An agent that refuses a request
// may close the connection before it has read all of the request, and the client must still read the agent's
// answer.
func (c *conn) send(box []byte) error {
	err := writeAll(c.fd, box)
	if err == syscall.EPIPE || err == syscall.ECONNRESET {
		return nil
	}
	return err
}

// receive reads one box and calls take for each pair. take must not keep the slices. receive returns an error if
// the connection fails, or if the agent closes it before the box ends.
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
	// ECONNRESET means that the agent has closed the connection without reading all bytes.
	isClosed := err == nil && n == 0 || err == syscall.ECONNRESET
	if isClosed {
		return amp.Error("the agent closed the connection")
	}
	if err != nil {
		return err
	}

	c.decoder.Feed(chunk[:n])
	return nil
}
