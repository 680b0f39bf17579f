package client

import (
	"strconv"
	"syscall"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// maxAnswer limits the size of an answer that the client accepts from its agent, in bytes.
const maxAnswer = 1 << 30

// writeAll writes all of p. It continues after interruptions and short writes, and waits if the descriptor is
// non-blocking.
func writeAll(fd int, p []byte) error {
	for len(p) > 0 {
		n, err := syscall.Write(fd, p)
		if n > 0 {
			p = p[n:]
		}

		switch err {
		case nil, syscall.EINTR:
			// The loop then writes the rest.
		case syscall.EAGAIN:
			awaitReady(nil, singleFdSet(fd), fd)
		default:
			return err
		}
	}

	return nil
}

// readSome reads the available bytes, and waits if no bytes are available. It returns 0 at the end.
func readSome(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
			// The loop then reads again.
		case syscall.EAGAIN:
			awaitReady(singleFdSet(fd), nil, fd)
		default:
			return 0, err
		}
	}
}

// awaitReady waits until the descriptor is ready. If fd is too large for select(2), both sets are nil. awaitReady then
// sleeps for a millisecond, and its callers try again in a loop.
func awaitReady(readable, writable *syscall.FdSet, fd int) {
	if readable == nil && writable == nil {
		pause := syscall.NsecToTimespec(1_000_000)
		syscall.Nanosleep(&pause, nil)
		return
	}
	syscall.Select(fd+1, readable, writable, nil, nil)
}

// singleFdSet returns the set of one descriptor for select, or nil if its number is too large.
func singleFdSet(fd int) *syscall.FdSet {
	var set syscall.FdSet
	bitsPerWord := syscall.FD_SETSIZE / len(set.Bits)
	if fd >= syscall.FD_SETSIZE {
		return nil
	}

	set.Bits[fd/bitsPerWord] |= 1 << (fd % bitsPerWord)
	return &set
}

// answer is a box from the agent, which is received pair by pair. The agent sends stdout last. The client writes each part
// of stdout when it arrives, so that a large setting needs little memory.
type answer struct {
	box     amp.Box // all pairs except stdout
	printed int     // bytes of stderr and stdout that the early client has already printed
	opened  bool    // openOutput has run, and has set out or problem
	out     int     // the descriptor for stdout
	problem string  // why the descriptor out cannot be written, as the caller will see it
}

// addPair stores a pair of the answer, or writes it if it is a part of stdout.
func (a *answer) addPair(key, value []byte) {
	// The later chunks of stdout have the keys stdout.1, stdout.2 and so on.
	if name, _, _ := cutByte(string(key), '.'); name != wire.KeyStdout {
		a.box[string(key)] = string(value)
		return
	}
	a.openOutput()
	a.writePart(value)
}

// openOutput opens the file for the tool's output. It prints the tool's stderr first, since the output file may be the
// caller's stderr. If the file cannot be opened, it sets a.problem. A second call does nothing.
func (a *answer) openOutput() {
	if a.opened {
		return
	}

	a.opened = true
	writeAll(2, a.skipPrinted([]byte(a.box.Value(wire.KeyStderr)))) // without stderr, no error can be reported
	fd, ok := callerDescriptor(a.outputPath())
	if !ok {
		var err error
		if fd, err = openFile(a.outputPath(), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC); err != nil {
			a.problem = "open " + a.outputPath() + ": " + err.Error()
		}
	}
	a.out = fd
}

// skipPrinted returns the part without the bytes that the early client has already printed.
func (a *answer) skipPrinted(part []byte) []byte {
	n := min(a.printed, len(part))
	a.printed -= n
	return part[n:]
}

// outputPath returns the path of the file for the tool's output. Without the option -o it is /dev/stdout.
func (a *answer) outputPath() string {
	if path := a.box.Value(wire.KeyWrite); path != "" {
		return path
	}
	return "/dev/stdout"
}

// writePart writes a part of the tool's output, without the bytes that the early client has already printed. If that
// fails, it sets a.problem, and later parts are dropped. If the reader has closed the pipe, as head does in
// "relation-get | head -1", that is not a problem, and the tool's exit code remains the same.
func (a *answer) writePart(part []byte) {
	if a.problem != "" {
		return
	}

	err := writeAll(a.out, a.skipPrinted(part))
	// EPIPE comes from a pipe, and ECONNRESET from a network socket.
	isReaderGone := err == syscall.EPIPE || err == syscall.ECONNRESET
	if err != nil && !isReaderGone {
		a.problem = "write " + a.outputPath() + ": " + err.Error()
	}
}

// finish opens the tool's output if no stdout has arrived, so that stderr is printed and the file of -o exists. It then
// closes that file, and returns the tool's exit code. If the output could not be written, or if the answer has no exit
// code, it prints the problem and returns 1.
func (a *answer) finish() int {
	code, err := strconv.Atoi(a.box.Value(wire.KeyExit))
	if err != nil {
		return fail("cannot parse the agent's answer")
	}
	a.openOutput()

	// Close only a file that openOutput has opened.
	if _, ok := callerDescriptor(a.outputPath()); !ok && a.problem == "" {
		if err := syscall.Close(a.out); err != nil {
			a.problem = "write " + a.outputPath() + ": " + err.Error()
		}
	}
	if a.problem != "" {
		return fail(a.problem)
	}

	return code
}

// fail prints the message as an error, and returns the exit code for a failed call.
func fail(message string) int {
	writeAll(2, []byte("ERROR "+message+"\n"))
	return 1
}
