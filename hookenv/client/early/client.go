//go:build linux && (amd64 || arm64) && !race && !msan && !asan

//lint:file-ignore U1000 the linker has entry's name, and entry has begin's

package early

import (
	"syscall"
	"unsafe"

	"bijou/hookenv/amp"
	"bijou/hookenv/client/wire"
)

// entry is where the kernel starts the process: it calls begin, then Go's runtime.
func entry()

// systemCall returns what the kernel does: a negative errno if it fails.
func systemCall(number, a, b, c, d, e, f uintptr) int

//go:nosplit
func begin(stack unsafe.Pointer) {
	entered = true
	argc := *(*int)(stack)
	id, socket := findVariable(stack, argc, "JUJU_CLIENT_ID="), findVariable(stack, argc, "JUJU_SOCKET=")
	if len(id) == 0 || argc < 1 || !isTool(cString(wordAt(stack, 1))) || len(findVariable(stack, argc, "GODEBUG=")) > 0 {
		return
	}
	systemCall(syscall.SYS_RT_SIGPROCMASK, 0 /* SIG_BLOCK */, uintptr(unsafe.Pointer(&droppedSignals)), 0, 8, 0, 0)
	args := joinArgs(stack)
	sent.addPair(wire.KeyCommand, wire.CommandTool)
	sent.addPair(wire.KeyAsk, "1")
	sent.addPair(wire.KeyClientID, id)
	sent.addPair(wire.KeyArgv, args)
	sent.addPair(wire.KeyDirectory, workingDirectory())
	sent.addPair(wire.KeyStdin, stdinKind())
	sent.addText("")
	if len(args) > 0 && sent.n < len(sent.bytes) && connect(socket) && send() {
		converse(id)
	}
}

// findVariable returns the value of an environment variable, or "". The name ends with "=". If there are two,
// the first counts, as in Go.
//
//go:nosplit
func findVariable(stack unsafe.Pointer, argc int, name string) string {
	for i := argc + 2; wordAt(stack, i) != nil; i++ {
		if variable := wordAt(stack, i); hasPrefix(cString(variable), name) {
			return cString(unsafe.Add(variable, len(name)))
		}
	}
	return ""
}

//go:nosplit
func isTool(path string) bool {
	base := 0
	for i := 0; i < len(path); i++ {
		if path[i] == '/' {
			base = i + 1
		}
	}
	next := base // what comes next in path if it is this name; -1: it is not
	for i := 0; i < len(wire.ToolNames); i++ {
		switch c := wire.ToolNames[i]; {
		case c == ' ' && next == len(path):
			return true
		case c == ' ':
			next = base
		case next >= 0 && next < len(path) && path[next] == c:
			next++
		default:
			next = -1
		}
	}
	return next == len(path)
}

// joinArgs returns the arguments with NULs between, as the kernel lays them out; "" for the client's own.
//
//go:nosplit
func joinArgs(stack unsafe.Pointer) string {
	first := wordAt(stack, 1)
	end := first
	for i := 1; wordAt(stack, i) != nil; i++ {
		arg := cString(wordAt(stack, i))
		if wordAt(stack, i) != end || hasPrefix(arg, "--client") || hasPrefix(arg, "--socket") {
			return ""
		}
		end = unsafe.Add(end, len(arg)+1)
	}
	return stringAt(first, int(uintptr(end)-uintptr(first))-1)
}

// workingDirectory returns the working directory, or "" if it is gone or out of reach. It uses the buffer
// received, in which nothing was received yet.
//
//go:nosplit
func workingDirectory() string {
	n := systemCall(syscall.SYS_GETCWD, uintptr(received.at(0)), syscall.PathMax, 0, 0, 0, 0)
	if n < 2 || received.bytes[0] != '/' {
		return ""
	}
	return received.text(0, n-1)
}

//go:nosplit
func stdinKind() string {
	systemCall(syscall.SYS_FSTAT, 0, uintptr(unsafe.Pointer(&fileStatus)), 0, 0, 0, 0)
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

// connect connects to the agent's socket, and reports whether it could. It leaves to Go a name that is no path,
// and a process with a closed descriptor among the first three, which Go opens.
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
	size := unsafe.Offsetof(socketAddress.Path) + uintptr(len(path)) + 1
	if fd <= 2 || systemCall(syscall.SYS_CONNECT, uintptr(fd), uintptr(unsafe.Pointer(&socketAddress)), size, 0, 0, 0) < 0 {
		systemCall(syscall.SYS_CLOSE, uintptr(fd), 0, 0, 0, 0, 0)
		return false
	}
	agent = fd
	return true
}

//go:nosplit
func send() bool {
	n := systemCall(syscall.SYS_SENDTO, uintptr(agent), uintptr(sent.at(0)), uintptr(sent.n), syscall.MSG_NOSIGNAL, 0, 0)
	unsent = max(n, 0)
	return n == sent.n
}

//go:nosplit
func (b *buffer) readFrom(fd, end int) int {
	n := systemCall(syscall.SYS_READ, uintptr(fd), uintptr(b.at(b.n)), uintptr(end-b.n), 0, 0, 0)
	b.n += max(n, 0)
	return n
}

// converse exits once the agent's answer is there, if it is plain and short.
//
//go:nosplit
func converse(id string) {
	for received.readFrom(agent, len(received.bytes)) > 0 {
		switch a := parseAnswer(); {
		case a.end == 0: // more is to come
		case a.end != received.n:
			return
		case a.exit >= 0 && len(a.want) == 0:
			if print(2, a.stderr) && print(1, a.stdout) {
				systemCall(syscall.SYS_EXIT_GROUP, uintptr(a.exit), 0, 0, 0, 0, 0)
			}
			return
		case a.exit >= 0 || !isEqual(a.want, "-") || len(a.stderr)+len(a.stdout) > 0 || !sendStdin(id):
			return
		}
	}
}

// answer is a box of the agent's.
type answer struct {
	end                  int // 0: it has not come yet; -1: it is not for this client
	exit                 int // -1: there is none
	stderr, stdout, want string
}

// parseAnswer parses the agent's answer. It accepts an answer only if each pair is there once and complete,
// none is empty, and stdout is the last.
//
//go:nosplit
func parseAnswer() answer {
	a := answer{exit: -1}
	for at := 0; ; {
		key, value, end := received.pairAt(at)
		plain := len(value) > 0 && len(value) < amp.MaxValue && len(a.stdout) == 0
		switch {
		case end <= 0 || len(key) == 0:
			a.end = end
			return a
		case plain && isEqual(key, wire.KeyAnswer):
			// The agent's answer begins with it.
		case plain && isEqual(key, wire.KeyExit) && a.exit < 0 && len(value) == 1 && value[0] >= '0' && value[0] <= '9':
			a.exit = int(value[0] - '0')
		case plain && isEqual(key, wire.KeyStderr) && len(a.stderr) == 0:
			a.stderr = value
		case plain && isEqual(key, wire.KeyStdout):
			a.stdout = value
		case plain && isEqual(key, wire.KeyWant) && len(a.want) == 0:
			a.want = value
		default:
			a.end = -1
			return a
		}
		at = end
	}
}

//go:nosplit
func print(fd uintptr, s string) bool {
	if len(s) == 0 {
		return true
	}
	n := systemCall(syscall.SYS_WRITE, fd, uintptr(unsafe.Pointer(unsafe.StringData(s))), uintptr(len(s)), 0, 0, 0)
	printed += max(n, 0)
	return n == len(s)
}

//go:nosplit
func sendStdin(id string) bool {
	n := 1 // no socket is read, which says only once that it fails
	for n > 0 && stdin.n < amp.MaxValue && fileStatus.Mode&syscall.S_IFMT != syscall.S_IFSOCK {
		n = stdin.readFrom(0, amp.MaxValue)
	}
	if n != 0 {
		return false
	}
	sent.n = 0
	sent.addPair(wire.KeyCommand, wire.CommandFile)
	sent.addPair(wire.KeyAsk, "1")
	sent.addPair(wire.KeyClientID, id)
	sent.addPair(wire.KeyValue, stdin.text(0, stdin.n))
	sent.addText("")
	received.n = 0
	stdin.n = 0
	return send()
}
