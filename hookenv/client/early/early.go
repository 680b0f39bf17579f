// Package early is a thin client that runs before Go's runtime starts. In a binary that is linked with
//
//	-ldflags '-E bijou/hookenv/client/early.entry'
//
// as .ci/build does, the kernel starts a process in this package and not in the runtime. A hook tool then sends its
// request to the agent, prints the answer and exits, with about a dozen system calls. This is faster than the start
// of the runtime, which the tool then skips. Without the flag the binary contains none of this code.
//
// The package handles only calls without complications. In all other cases it returns, Go's runtime starts as usual, and
// hookenv/client takes over:
//
//   - If the package returns before there is a connection, hookenv/client does all the work. This happens
//     without a client id, with a client id in argv, with 64 KiB of argv or more, with GODEBUG, or if the
//     agent cannot be reached.
//   - If the package returns later, hookenv/client continues the conversation, so that nothing is sent, read
//     or printed twice. This happens for an answer or a stdin of 64 KiB or more, for files (@PATH, --file
//     PATH, -o), and after an incomplete system call. Package early cannot recognize these cases in advance,
//     since only the agent knows which arguments are files, and how long the answer is.
//
// Two reasons exclude these cases: the package must stay short, and their error messages need Go's texts for errno
// values, which are not available here. Both clients print the same output and exit with the same code, unless a
// signal ends them. Package early does not print goroutines after a signal, and ignores the signals that its caller
// ignores.
//
// Code that runs before the runtime has no g, no heap, no write barriers and no growing stack, and nothing recovers from
// a panic. So the following rules apply to all code that begin calls:
//
//   - Every function that is not inlined is //go:nosplit. The linker limits their stack frames to 800 bytes in total.
//   - Large data, and data for hookenv/client, is in package variables without pointers. A pointer would need a write
//     barrier.
//   - Each index is compared with the length just before its use, so that the compiler adds no bounds check. Strings are
//     not sliced, and not compared with ==.
//   - There is no make, append, copy, closure, interface, map or defer, and no call to another package.
//
// entry_GOARCH.s contains the entry point and the system call. On amd64 the entry point makes FS point at the stack
// while begin runs, since Go code loads g from FS whenever assembly returns. TestNoCallIntoTheRuntime follows all
// calls from entry in the binary. The test fails, and names the function, if a new version of Go adds a check, a
// barrier or a copy. FuzzRoads compares requests, output and exit codes with hookenv/client. If the package cannot be
// adapted to a new version of Go, remove the flag from .ci/build. Only this package is allowed to import unsafe and
// to change package variables.
package early

import (
	"syscall"
	"unsafe"

	"bijou/hookenv/amp"
)

// Conversation is a conversation with the agent that this package has begun, and that hookenv/client must continue.
type Conversation struct {
	FD       int    // the descriptor of the connection
	Unsent   []byte // the part of the current request that has not been sent yet
	Received []byte // the beginning of the agent's answer
	Printed  int    // how many bytes of the answer's stderr and stdout have been printed
	Ahead    []byte // the beginning of stdin, which the agent has requested and which cannot be read again
}

var (
	entered               bool // the process began at entry
	agentFD               int  // the descriptor of the connection; 0 if there is none
	sent, received, stdin buffer
	unsent                int // where the unsent part of the request begins in sent
	printed               int // how many bytes of the answer were printed
	socketAddress         = syscall.RawSockaddrUnix{Family: syscall.AF_UNIX}
	fileStatus            syscall.Stat_t
	// droppedSignals are the signals that do not end a Go program. They are blocked, so that they do not end this
	// client. A write to a closed pipe then fails, as in Go.
	droppedSignals uint64 = 1<<(syscall.SIGUSR1-1) | 1<<(syscall.SIGUSR2-1) | 1<<(syscall.SIGPIPE-1) | 1<<(syscall.SIGALRM-1) |
		1<<(syscall.SIGXCPU-1) | 1<<(syscall.SIGXFSZ-1) | 1<<(syscall.SIGVTALRM-1) | 1<<(syscall.SIGIO-1) |
		1<<(syscall.SIGPWR-1) | (1<<64 - 1<<(35-1)) // all from 35 on; not SIGPROF and 33, which end a process if Go has not started yet
)

// Entered reports whether this process began in this package.
func Entered() bool { return entered }

// TakeOver returns the conversation that this package has begun. ok is false if there is none. The slices
// refer to this package's memory.
func TakeOver() (c Conversation, ok bool) {
	return Conversation{
		FD:       agentFD,
		Unsent:   sent.bytes[unsent:sent.n],
		Received: received.bytes[:received.n],
		Printed:  printed,
		Ahead:    stdin.bytes[:stdin.n],
	}, agentFD > 0
}

// wordAt returns a word of the initial stack, which contains argc, the arguments, nil, the environment and nil.
func wordAt(stack unsafe.Pointer, i int) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(stack, i*8))
}

// stringAt does what unsafe.String does, without a call into the runtime.
//
//go:nosplit
func stringAt(p unsafe.Pointer, n int) string {
	return *(*string)(unsafe.Pointer(&[2]uintptr{uintptr(p), uintptr(n)}))
}

// cString returns the NUL-terminated string at p, without copying it.
//
//go:nosplit
func cString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return stringAt(p, n)
}

// hasPrefix does what strings.HasPrefix does.
//
//go:nosplit
func hasPrefix(s, prefix string) bool {
	for i := 0; i < len(prefix); i++ {
		if i >= len(s) || s[i] != prefix[i] {
			return false
		}
	}
	return true
}

func isEqual(a, b string) bool { return len(a) == len(b) && hasPrefix(a, b) }

// buffer holds a box. If n is the size of bytes, the box did not fit. Pages that are never used need no
// memory.
type buffer struct {
	n     int
	bytes [2*amp.MaxValue + 4096]byte
}

func (b *buffer) at(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&b.bytes), i) }
func (b *buffer) text(i, n int) string    { return stringAt(b.at(i), n) }

// addPair adds a key and its value.
//
//go:nosplit
func (b *buffer) addPair(key, value string) { b.addText(key); b.addText(value) }

// addText adds the length of a text, and the text. If the text is too long for one value, it
// only marks the buffer as full.
//
//go:nosplit
func (b *buffer) addText(s string) {
	if len(s) > amp.MaxValue {
		b.n = len(b.bytes)
	}

	b.addByte(byte(len(s) >> 8))
	b.addByte(byte(len(s)))
	for i := 0; i < len(s); i++ {
		b.addByte(s[i])
	}
}

// addByte adds a byte, unless the buffer is full.
//
//go:nosplit
func (b *buffer) addByte(c byte) {
	if n := b.n; n >= 0 && n < len(b.bytes) {
		b.bytes[n] = c
		b.n = n + 1
	}
}

// pairAt returns a pair and the offset of its end. At the end of a box the key is empty, and there is no value. end is 0
// if the pair was not received completely, and -1 if it is malformed.
//
//go:nosplit
func (b *buffer) pairAt(at int) (key, value string, end int) {
	key, end = b.textAt(at, amp.MaxKey)
	if end > 0 && len(key) > 0 {
		value, end = b.textAt(end, amp.MaxValue)
	}
	return key, value, end
}

// textAt returns the text whose length is at the offset, and the offset of the text's end. end is 0 if the
// text was not received completely, and -1 if it is longer than limit.
//
//go:nosplit
func (b *buffer) textAt(at, limit int) (text string, end int) {
	// The first two conditions only keep the compiler from adding bounds checks.
	if at < 0 || at >= len(b.bytes)-1 || at+2 > b.n {
		return "", 0
	}

	n := int(b.bytes[at])<<8 | int(b.bytes[at+1])
	if n > limit {
		return "", -1
	}
	end = at + 2 + n
	if end > b.n {
		return "", 0
	}

	return b.text(at+2, n), end
}
