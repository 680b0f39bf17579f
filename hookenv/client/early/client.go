//go:build linux && (amd64 || arm64) && !race && !msan && !asan

//lint:file-ignore U1000 the linker has entry's name, and entry has begin's

package early

import (
	"syscall"
	"unsafe"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// entry is the entry point at which the kernel starts the process. It calls begin, and then Go's entry point.
func entry()

// systemCall returns the result of a system call. If the call fails, the result is a negative errno.
func systemCall(number, a, b, c, d, e, f uintptr) int

// begin calls the tool through the agent, and exits if everything goes well. Otherwise it returns, and Go's runtime
// starts. wordAt describes the initial stack, at which stack points.
//
//go:nosplit
func begin(stack unsafe.Pointer) {
	entered = true
	argc := *(*int)(stack)

	// Handle only hook tools with a client id. Only Go's runtime handles GODEBUG.
	id, socket := findVariable(stack, argc, "JUJU_CLIENT_ID="), findVariable(stack, argc, "JUJU_SOCKET=")
	if len(id) == 0 || argc < 1 || !isTool(cString(wordAt(stack, 1))) || len(findVariable(stack, argc, "GODEBUG=")) > 0 {
		return
	}

	// As in a Go program, these signals must not end the process.
	systemCall(syscall.SYS_RT_SIGPROCMASK, 0 /* SIG_BLOCK */, uintptr(unsafe.Pointer(&droppedSignals)), 0, 8, 0, 0)

	args := joinArgs(stack)
	sent.addPair(wire.KeyCommand, wire.CommandTool)
	sent.addPair(wire.KeyAsk, "1")
	sent.addPair(wire.KeyClientID, id)
	sent.addPair(wire.KeyArgv, args)
	sent.addPair(wire.KeyDirectory, workingDirectory())
	sent.addPair(wire.KeyStdin, stdinKind())
	sent.addText("") // an empty key ends the box

	// args is empty if this package cannot handle the arguments. A full buffer means that the request did not fit.
	if len(args) > 0 && sent.n < len(sent.bytes) && connect(socket) && send() {
		converse(id)
	}
}

// findVariable returns the value of an environment variable, or "". name ends with "=". If the variable is set twice,
// the first value counts, as in Go.
//
//go:nosplit
func findVariable(stack unsafe.Pointer, argc int, name string) string {
	// The environment follows argc, the arguments and nil.
	for i := argc + 2; wordAt(stack, i) != nil; i++ {
		if variable := wordAt(stack, i); hasPrefix(cString(variable), name) {
			return cString(unsafe.Add(variable, len(name)))
		}
	}
	return ""
}

// isTool reports whether the last element of the path is the name of a hook tool.
//
//go:nosplit
func isTool(path string) bool {
	base := 0
	for i := 0; i < len(path); i++ {
		if path[i] == '/' {
			base = i + 1
		}
	}
	// next is the position in path up to which the current tool's name has matched, or -1 if it does not match.
	next := base
	for i := 0; i < len(wire.ToolNames); i++ {
		switch c := wire.ToolNames[i]; {
		case c == ' ' && next == len(path):
			return true
		case c == ' ':
			next = base // the next tool's name begins
		case next >= 0 && next < len(path) && path[next] == c:
			next++
		default:
			next = -1
		}
	}

	return next == len(path)
}

// joinArgs returns the arguments joined with NUL bytes, as the kernel stores them. It returns "" if one of them begins
// like an option for the client itself, or if the kernel has not stored them one after the other.
//
//go:nosplit
func joinArgs(stack unsafe.Pointer) string {
	first := wordAt(stack, 1)
	end := first // where the next argument must begin
	for i := 1; wordAt(stack, i) != nil; i++ {
		arg := cString(wordAt(stack, i))
		if wordAt(stack, i) != end || hasPrefix(arg, "--client") || hasPrefix(arg, "--socket") {
			return ""
		}
		end = unsafe.Add(end, len(arg)+1)
	}
	return stringAt(first, int(uintptr(end)-uintptr(first))-1)
}

// workingDirectory returns the working directory, or "" if it is gone or unreachable. It uses the buffer
// received, since that is still empty.
//
//go:nosplit
func workingDirectory() string {
	n := systemCall(syscall.SYS_GETCWD, uintptr(received.at(0)), syscall.PathMax, 0, 0, 0, 0)
	if n < 2 || received.bytes[0] != '/' {
		return ""
	}
	return received.text(0, n-1) // without the NUL byte at the end
}

// stdinKind returns the kind of file that stdin is. It stores the status of stdin in fileStatus, which sendStdin
// reads.
//
//go:nosplit
func stdinKind() string {
	systemCall(syscall.SYS_FSTAT, 0, uintptr(unsafe.Pointer(&fileStatus)), 0, 0, 0, 0) // after an error, Mode remains 0
	switch kind := fileStatus.Mode & syscall.S_IFMT; {
	case kind == syscall.S_IFIFO:
		return wire.StdinFIFO
	case kind == syscall.S_IFREG:
		return wire.StdinFile
	case kind == syscall.S_IFCHR && fileStatus.Rdev != wire.NullDevice:
		return wire.StdinTerminal
	}
	return wire.StdinNone
}

// connect connects to the agent's socket, sets agentFD to its descriptor, and reports whether it succeeded. It fails if the
// path is empty, abstract or too long. It also fails if one of the first three descriptors is closed, since the socket
// would get its number, where Go's runtime opens /dev/null.
//
//go:nosplit
func connect(path string) bool {
	if len(path) == 0 || len(path) >= len(socketAddress.Path) || hasPrefix(path, "@") {
		return false
	}
	for i := 0; i < len(path) && i < len(socketAddress.Path); i++ {
		socketAddress.Path[i] = int8(path[i])
	}

	fd := systemCall(syscall.SYS_SOCKET, syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0, 0, 0, 0)
	size := unsafe.Offsetof(socketAddress.Path) + uintptr(len(path)) + 1 // the path ends with a NUL byte
	if fd <= 2 || systemCall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&socketAddress)), size, 0, 0, 0) < 0 {
		systemCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0) // does nothing if there is no socket
		return false
	}

	agentFD = fd
	return true
}

// send sends the request in the buffer sent, and reports whether all of it was sent.
//
//go:nosplit
func send() bool {
	n := systemCall(syscall.SYS_SENDTO, uintptr(agentFD), uintptr(sent.at(0)), uintptr(sent.n), syscall.MSG_NOSIGNAL, 0, 0)
	unsent = max(n, 0)
	return n == sent.n
}

// readFrom reads from a descriptor into the buffer, up to the offset end. It returns the result of the system call.
//
//go:nosplit
func (b *buffer) readFrom(fd, end int) int {
	n := systemCall(syscall.SYS_READ, uintptr(fd), uintptr(b.at(b.n)), uintptr(end-b.n), 0, 0, 0)
	b.n += max(n, 0)
	return n
}

// converse receives answers and sends stdin. It exits after an answer that this package can handle. Otherwise it returns.
//
//go:nosplit
func converse(id string) {
	for received.readFrom(agentFD, len(received.bytes)) > 0 {
		switch a := parseAnswer(); {
		case a.end == 0: // the answer is not complete
		case a.end != received.n:
			return // this package cannot handle the answer, or other bytes follow it
		case a.exit >= 0 && len(a.want) == 0:
			if print(2, a.stderr) && print(1, a.stdout) {
				systemCall(syscall.SYS_EXIT_GROUP, uintptr(a.exit), 0, 0, 0, 0, 0)
			}
			return // hookenv/client prints the rest
		case a.exit >= 0 || !isEqual(a.want, "-") || len(a.stderr)+len(a.stdout) > 0 || !sendStdin(id):
			// The answer is not a plain request for stdin, or stdin could not be sent. After sendStdin has sent
			// stdin, the loop reads the next answer.
			return
		}
	}
}

// answer is a box from the agent.
type answer struct {
	end                  int // the offset of the answer's end; 0 if the answer is not complete, -1 if this package cannot handle it
	exit                 int // the exit code, or -1 if the answer has none
	stderr, stdout, want string
}

// parseAnswer parses the received bytes as an answer of the agent. The field end of the result says whether the answer is
// complete, and whether this package can handle it. It cannot handle an unknown key, a repeated key other than KeyAnswer,
// an empty value, a value in chunks, an exit code of several digits, or a pair after stdout.
//
//go:nosplit
func parseAnswer() answer {
	a := answer{exit: -1}
	for at := 0; ; {
		key, value, end := received.pairAt(at)
		// A longer value has several chunks, and no pair can follow stdout.
		isAccepted := len(value) > 0 && len(value) < amp.MaxValue && len(a.stdout) == 0
		switch {
		case end <= 0 || len(key) == 0:
			// The answer is incomplete, so end is 0, or malformed, so end is -1, or it ends here.
			a.end = end
			return a
		case isAccepted && isEqual(key, wire.KeyAnswer):
			// The value is the id of the request. It needs no check, since this client sends one request at a time.
		case isAccepted && isEqual(key, wire.KeyExit) && a.exit < 0 && len(value) == 1 && value[0] >= '0' && value[0] <= '9':
			a.exit = int(value[0] - '0')
		case isAccepted && isEqual(key, wire.KeyStderr) && len(a.stderr) == 0:
			a.stderr = value
		case isAccepted && isEqual(key, wire.KeyStdout):
			a.stdout = value
		case isAccepted && isEqual(key, wire.KeyWant) && len(a.want) == 0:
			a.want = value
		default:
			a.end = -1
			return a
		}
		at = end
	}
}

// print writes a text to a descriptor, counts the printed bytes, and reports whether all were printed.
//
//go:nosplit
func print(fd uintptr, s string) bool {
	if len(s) == 0 {
		return true
	}

	n := systemCall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(len(s)), 0, 0, 0)
	printed += max(n, 0)
	return n == len(s)
}

// sendStdin reads stdin and sends it to the agent. It returns false if that fails, if stdin is too long, or if stdin is a
// socket. If it cannot read all of stdin, the buffer stdin keeps the bytes that it has read.
//
//go:nosplit
func sendStdin(id string) bool {
	// A socket reports an error only once, and only hookenv/client can print it. So this loop does not read a socket,
	// and n stays 1.
	n := 1
	for n > 0 && stdin.n < amp.MaxValue && fileStatus.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		n = stdin.readFrom(0, amp.MaxValue)
	}
	if n != 0 {
		return false // n is 0 only at the end of stdin
	}

	sent.n = 0
	sent.addPair(wire.KeyCommand, wire.CommandFile)
	sent.addPair(wire.KeyAsk, "1")
	sent.addPair(wire.KeyClientID, id)
	sent.addPair(wire.KeyValue, stdin.text(0, stdin.n))
	sent.addText("") // an empty key ends the box

	// If this package returns later, hookenv/client must not handle the agent's request again, or send stdin again.
	received.n = 0
	stdin.n = 0
	return send()
}
