package client

import (
	"strconv"
	"syscall"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// maxAnswer bounds what the client believes of its own agent, in bytes.
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
			// Write the rest, or again.
		case syscall.EAGAIN:
			awaitReady(nil, singleFdSet(fd), fd)
		default:
			return err
		}
	}

	return nil
}

// readSome reads the bytes that are there, or waits for some. It returns 0 and no error at the end.
func readSome(fd int, p []byte) (int, error) {
	for {
		n, err := syscall.Read(fd, p)
		switch err {
		case nil:
			return n, nil
		case syscall.EINTR:
			// Read again.
		case syscall.EAGAIN:
			awaitReady(singleFdSet(fd), nil, fd)
		default:
			return 0, err
		}
	}
}

// awaitReady waits until the descriptor is ready. If it is too high for select(2), both sets are nil, and
// awaitReady sleeps for a millisecond; its callers try again in a loop.
func awaitReady(readable, writable *syscall.FdSet, fd int) {
	if readable == nil && writable == nil {
		rest := syscall.NsecToTimespec(1_000_000)
		syscall.Nanosleep(&rest, nil)
		return
	}
	syscall.Select(fd+1, readable, writable, nil, nil)
}

// singleFdSet returns the set of one descriptor for select, or nil if its number is too large.
func singleFdSet(fd int) *syscall.FdSet {
	var set syscall.FdSet
	word := syscall.FD_SETSIZE / len(set.Bits)
	if fd >= syscall.FD_SETSIZE {
		return nil
	}

	set.Bits[fd/word] |= 1 << (fd % word)
	return &set
}

// answer is one box of the agent's, taken pair by pair: what goes to stdout is passed on as it
// comes, so that a large setting needs no memory here. The agent sends it last.
type answer struct {
	box     amp.Box // all but what goes to stdout
	printed int     // bytes that are printed already
	opened  bool    // stderr is printed, and out is open
	out     int
	problem string // why out cannot be written, for people
}

func (a *answer) addPair(key, value []byte) {
	if first, _, _ := cutByte(string(key), '.'); first != wire.KeyStdout {
		a.box[string(key)] = string(value)
		return
	}
	a.openOutput()
	a.writePart(value)
}

// openOutput opens the file that the tool's output goes to, once. It prints stderr first, since the caller
// may have named its own stderr as that file.
func (a *answer) openOutput() {
	if a.opened {
		return
	}

	a.opened = true
	writeAll(2, a.skipPrinted([]byte(a.box.Value(wire.KeyStderr))))
	fd, ok := callerDescriptor(a.outputPath())
	if !ok {
		var err error
		if fd, err = openFile(a.outputPath(), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC); err != nil {
			a.problem = "open " + a.outputPath() + ": " + err.Error()
		}
	}
	a.out = fd
}

func (a *answer) skipPrinted(part []byte) []byte {
	n := min(a.printed, len(part))
	a.printed -= n
	return part[n:]
}

func (a *answer) outputPath() string {
	if path := a.box.Value(wire.KeyWrite); path != "" {
		return path
	}
	return "/dev/stdout"
}

// writePart writes a part of the tool's output. A reader that has closed its end is no problem: it had all
// that it wanted (relation-get | head -1), also behind a network, and the tool's exit code stands.
func (a *answer) writePart(part []byte) {
	if a.problem != "" {
		return
	}

	if err := writeAll(a.out, a.skipPrinted(part)); err != nil && err != syscall.EPIPE &&
		err != syscall.ECONNRESET {
		a.problem = "write " + a.outputPath() + ": " + err.Error()
	}
}

// finish closes the tool's output, and returns its exit code.
func (a *answer) finish() int {
	code, err := strconv.Atoi(a.box.Value(wire.KeyExit))
	if err != nil {
		return fail("cannot understand the agent's answer")
	}
	a.openOutput()

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

// fail prints the message, and returns the exit code for a failure in transport.
func fail(message string) int {
	writeAll(2, []byte("ERROR "+message+"\n"))
	return 1
}
