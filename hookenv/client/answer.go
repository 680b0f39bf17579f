package client

import (
	"strconv"
	"syscall"

	"bijou/hookenv/amp"
)

// answer is one box of the agent's, taken pair by pair: what goes to stdout is passed on as it
// comes, so that a large setting needs no memory here. The agent sends it last.
type answer struct {
	box     amp.Box // all but what goes to stdout
	opened  bool    // stderr is printed, and out is open
	out     int
	problem string // why out cannot be written, for people
}

func (a *answer) addPair(key, value []byte) {
	if first, _, _ := cutByte(string(key), '.'); first != KeyStdout {
		a.box[string(key)] = string(value)
		return
	}
	a.openOutput()
	a.writePart(value)
}

// stderr is printed before the caller's file, if one is meant, is opened.
func (a *answer) openOutput() {
	if a.opened {
		return
	}
	a.opened = true
	writeAll(2, []byte(a.box.Value(KeyStderr)))
	fd, ok := callerDescriptor(a.outputPath())
	if !ok {
		var err error
		if fd, err = openFile(a.outputPath(), syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC); err != nil {
			a.problem = "open " + a.outputPath() + ": " + err.Error()
		}
	}
	a.out = fd
}

func (a *answer) outputPath() string {
	if path := a.box.Value(KeyWrite); path != "" {
		return path
	}
	return "/dev/stdout"
}

// A reader that has gone had what it wanted (relation-get | head -1); the tool's own answer stands.
func (a *answer) writePart(part []byte) {
	if a.problem != "" {
		return
	}
	if err := writeAll(a.out, part); err != nil && err != syscall.EPIPE {
		a.problem = "write " + a.outputPath() + ": " + err.Error()
	}
}

func (a *answer) finish() int {
	code, err := strconv.Atoi(a.box.Value(KeyExit))
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

// fail returns the exit code for what fails in transport.
func fail(message string) int {
	writeAll(2, []byte("ERROR "+message+"\n"))
	return 1
}
