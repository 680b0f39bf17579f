package client

import (
	"os"
	"strconv"
	"syscall"

	"bijou/hookenv/amp"
)

// fail prints an error as hook tools do and returns the exit code for what
// fails in transport.
func fail(message string) int {
	writeAll(2, []byte("ERROR "+message+"\n"))
	return 1
}

// deliver prints the last answer, or writes it to the caller's file, and
// returns the exit code.
func deliver(answer amp.Box) int {
	code, err := strconv.Atoi(answer.Value(KeyExit))
	if err != nil {
		return fail("cannot understand the agent's answer")
	}
	writeAll(2, []byte(answer.Value(KeyStderr)))
	stdout := []byte(answer.Value(KeyStdout))
	if path := answer.Value(KeyWrite); path != "" {
		if problem := writeFile(path, stdout); problem != "" {
			return fail(problem)
		}
		return code
	}
	// A reader that has gone had what it wanted (relation-get | head -1); the
	// tool's own answer stands.
	if err := writeAll(1, stdout); err != nil && err != syscall.EPIPE {
		return fail("write stdout: " + err.Error())
	}
	return code
}

// standard is the descriptor that a path means: its own name would open a
// terminal or a pipe a second time, truncate a file, and fail on a socket.
func standard(path string) (fd int, ok bool) {
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout", "-":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}
	return 0, false
}

// readFile reads a file whole, or stdin for "-"; a problem is worded for people.
func readFile(path string) (value, problem string) {
	if path == "-" {
		path = "/dev/stdin"
	}
	fd, ok := standard(path)
	if !ok {
		var err error
		if fd, err = open(path, syscall.O_RDONLY); err != nil {
			return "", "open " + path + ": " + err.Error()
		}
		defer syscall.Close(fd)
	}
	return readAll(fd, path)
}

func readAll(fd int, path string) (value, problem string) {
	buf := make([]byte, 0, 64<<10)
	for {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := read(fd, buf[len(buf):cap(buf)])
		if err != nil {
			return "", "read " + path + ": " + err.Error()
		}
		if n == 0 {
			return string(buf), ""
		}
		buf = buf[:len(buf)+n]
		if len(buf) > MaxFile {
			return "", "read " + path + ": more than the 16 MiB that a value may have"
		}
	}
}

// writeFile creates or replaces a file.
func writeFile(path string, data []byte) (problem string) {
	fd, ok := standard(path)
	if !ok {
		var err error
		if fd, err = open(path, syscall.O_WRONLY|syscall.O_CREAT|syscall.O_TRUNC); err != nil {
			return "open " + path + ": " + err.Error()
		}
	}
	err := writeAll(fd, data)
	if !ok {
		err = firstError(err, syscall.Close(fd))
	}
	if err != nil && err != syscall.EPIPE {
		return "write " + path + ": " + err.Error()
	}
	return ""
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func open(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0o666)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// stdinKind tells what stdin is, so that the agent knows whether reading it
// unasked would hang or eat somebody's input.
func stdinKind() string {
	var st syscall.Stat_t
	if err := syscall.Fstat(0, &st); err != nil {
		return StdinNone
	}
	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFIFO:
		return StdinFIFO
	case syscall.S_IFREG:
		return StdinFile
	case syscall.S_IFCHR:
		if st.Rdev != nullDevice(os.DevNull) {
			return StdinTerminal
		}
	}
	return StdinNone
}

// nullDevice is the device number of /dev/null, 0 if there is none.
func nullDevice(path string) uint64 {
	var st syscall.Stat_t
	if err := syscall.Stat(path, &st); err != nil {
		return 0
	}
	return uint64(st.Rdev)
}
