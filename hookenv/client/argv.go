package client

import (
	"os"
	"strconv"
	"syscall"

	"bijou/hookenv/client/wire"
)

// clientID returns the client id from the tool's arguments or, without such an option, from the environment.
func clientID(argv []string) string {
	if id := findOption(argv, "--client-id", "--client_id"); id != "" {
		return id
	}
	return os.Getenv("JUJU_CLIENT_ID")
}

// findOption returns the value of an option that has two names, or an empty string if argv does not contain
// it. The last value counts, and "--" ends the options.
func findOption(argv []string, name, alias string) string {
	found := ""
	for i := 1; i < len(argv) && argv[i] != "--"; i++ {
		key, value, joined := cutByte(argv[i], '=')
		if key != name && key != alias {
			continue
		}

		if !joined && i+1 < len(argv) {
			i++
			value = argv[i]
		}
		found = value
	}

	return found
}

// cutByte does what strings.Cut does. The package comment says why strings is not imported.
func cutByte(s string, separator byte) (before, after string, found bool) {
	for i := range len(s) {
		if s[i] == separator {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// baseName returns the part of the path after its last slash, or the whole path if it has no slash. The package comment
// says why filepath is not imported.
func baseName(path string) string {
	for i := len(path) - 1; i >= 0; i-- {
		if path[i] == '/' {
			return path[i+1:]
		}
	}
	return path
}

// joinArgs joins arguments with NUL bytes, which an argument cannot contain.
func joinArgs(argv []string) string {
	var joined []byte
	for i, arg := range argv {
		if i > 0 {
			joined = append(joined, 0)
		}
		joined = append(joined, arg...)
	}

	return string(joined)
}

// callerDescriptor returns the caller's open descriptor for a path such as /dev/stdin. Opening such a path instead could
// open a second terminal or pipe, truncate a file, or fail for a socket. fd is -1 if a path such as /dev/fd/9 names no
// descriptor that this process has inherited. "-" stands for stdout here, since readFile replaces the "-" that stands for
// stdin. ok is false for all other paths.
func callerDescriptor(path string) (fd int, ok bool) {
	switch path {
	case "/dev/stdin":
		return 0, true
	case "/dev/stdout", "-":
		return 1, true
	case "/dev/stderr":
		return 2, true
	}

	for _, prefix := range []string{"/dev/fd/", "/proc/self/fd/"} {
		if len(path) > len(prefix) && path[:len(prefix)] == prefix {
			return inheritedDescriptor(path[len(prefix):]), true
		}
	}

	return 0, false
}

// inheritedDescriptor returns the descriptor with this number, or -1 if this process has not inherited it.
// Descriptors that this process has opened have the flag FD_CLOEXEC, and inherited descriptors do not.
func inheritedDescriptor(number string) int {
	fd, err := strconv.Atoi(number)
	if err != nil {
		return -1
	}

	flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_GETFD, 0)
	if errno != 0 || flags&syscall.FD_CLOEXEC != 0 {
		return -1
	}

	return fd
}

// readFile reads a file for the tool. ahead contains the bytes of stdin that have already been read, and is empty for
// other files. problem says why the file cannot be read, and is "" after success.
func readFile(path string, ahead []byte) (data []byte, problem string) {
	if path == "-" {
		path = "/dev/stdin"
	}

	fd, ok := callerDescriptor(path)
	if !ok {
		var err error
		if fd, err = openFile(path, syscall.O_RDONLY); err != nil {
			return nil, "open " + path + ": " + err.Error()
		}
		defer syscall.Close(fd)
	}

	return readAll(fd, path, ahead)
}

// readAll reads a descriptor to its end. The result begins with ahead, the bytes that have already been read from
// the descriptor. problem says, in words for the tool's caller, why reading failed or that the file is too large.
func readAll(fd int, path string, ahead []byte) (data []byte, problem string) {
	buf := append(make([]byte, 0, bufferSize(fd)+len(ahead)), ahead...)

	for {
		if len(buf) == cap(buf) {
			// The append grows the buffer. The added byte is then cut off.
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := readSome(fd, buf[len(buf):cap(buf)])
		if err != nil {
			return nil, "read " + path + ": " + err.Error()
		}
		if n == 0 {
			return buf, ""
		}

		buf = buf[:len(buf)+n]
		if len(buf) > wire.MaxFile {
			return nil, "read " + path + ": the input has more than 17 MiB, but a value can have at most 16 MiB"
		}
	}
}

// bufferSize returns the size of the buffer for reading a descriptor. For a regular file it is one byte more than the
// file's size, so that the read at the end of the file fits into the buffer. The size is limited, since readAll refuses
// a file with more than wire.MaxFile bytes.
func bufferSize(fd int) int {
	var st syscall.Stat_t
	if err := syscall.Fstat(fd, &st); err != nil || st.Mode&syscall.S_IFMT != syscall.S_IFREG {
		return 64 << 10
	}
	return int(min(st.Size, wire.MaxFile)) + 1
}

// openFile opens a file that child processes do not inherit. It tries again if a signal interrupts it.
func openFile(path string, flags int) (int, error) {
	for {
		fd, err := syscall.Open(path, flags|syscall.O_CLOEXEC, 0o666)
		if err != syscall.EINTR {
			return fd, err
		}
	}
}

// stdinKind returns the kind of file that stdin is. The agent uses it to decide whether a tool can read stdin
// without an option that requests it. Such a read could hang, or consume input that is meant for another
// program.
func stdinKind() string {
	var st syscall.Stat_t
	if err := syscall.Fstat(0, &st); err != nil {
		return wire.StdinNone
	}

	switch st.Mode & syscall.S_IFMT {
	case syscall.S_IFIFO:
		return wire.StdinFIFO
	case syscall.S_IFREG:
		return wire.StdinFile
	case syscall.S_IFCHR:
		if st.Rdev != wire.NullDevice {
			return wire.StdinTerminal
		}
	}

	return wire.StdinNone
}
