// Package early is the thin client before there is a Go: in a binary that is linked with
//
//	-ldflags '-E bijou/hookenv/client/early.entry'
//
// as .ci/build does, the kernel starts a process here and not in Go's runtime. A hook tool in a hook
// asks the agent, prints the answer and exits, in a dozen system calls; Go's start, which costs more
// than all of that, never comes. Without the flag nothing of this is in the binary.
//
// It knows the way on which all goes well. Otherwise it returns, Go's runtime starts as in every program, and
// hookenv/client does the work: all of it before there is a connection (no client id, one in argv, an argv of 64 KiB,
// no agent, GODEBUG), and else the rest of the conversation, so that nothing is sent, read or printed twice: answers and
// stdin of 64 KiB, files that are named (@PATH, --file PATH, -o), a system call that has not done all it was asked.
// These cannot be met before: only the agent knows which argument names a file, and how much it answers. They are not
// done here, since what fails is told in Go's words for an errno, which are out of reach, and since this is to stay
// short. Both roads say and exit the same, unless a signal ends them: here no goroutines are written, and what the
// caller ignores is ignored.
//
// What runs before the runtime has no g, no heap, no write barrier, no stack that grows, and nobody to
// catch a panic. So, in what begin calls:
//
//   - every function that is not inlined is //go:nosplit; the linker holds their frames to 800 bytes;
//   - what is large, or is for Go to go on with, is a package variable without a pointer, which would want a barrier;
//   - an index is compared with the length just before, so that no check is compiled; no string is cut, or met by ==;
//   - no make, append, copy, closure, interface, map or defer, and no call to another package.
//
// entry_GOARCH.s has the entry and the system call. On amd64 it points FS at the stack meanwhile, since Go code loads
// g from there whenever assembly returns. TestNoCallIntoTheRuntime follows all calls from entry in the binary: a new Go
// that puts in a check, a barrier or a copy fails it, by the function's name. FuzzRoads holds what is sent, printed and
// exited with against hookenv/client. If a new Go cannot be pleased, take the flag out of .ci/build. This is the one
// package that may import unsafe and change package variables. hookenv/client imports it, to go on with conversations,
// and multicall, to say whether it is there.
package early

import (
	"syscall"
	"unsafe"

	"bijou/hookenv/amp"
)

// Conversation is one that the early client has begun, for the ordinary one to go on with.
type Conversation struct {
	FD       int    // the connection
	Unsent   []byte // the rest of the box that is being sent
	Received []byte // the beginning of the agent's answer
	Printed  int    // so many bytes of the answer's stderr and stdout are printed
	Ahead    []byte // the beginning of stdin, which the agent wants and nobody can read again
}

var (
	entered               bool // the process began at entry
	agent                 int  // the connection's descriptor; 0: there is none
	sent, received, stdin buffer
	unsent                int // where in sent the rest begins that is still to be sent
	printed               int // bytes of the answer
	socketAddress         = syscall.RawSockaddrUnix{Family: syscall.AF_UNIX}
	fileStatus            syscall.Stat_t
	// What does nothing to a Go program is blocked, and does nothing here; a write fails that it would end.
	droppedSignals uint64 = 1<<(syscall.SIGUSR1-1) | 1<<(syscall.SIGUSR2-1) | 1<<(syscall.SIGPIPE-1) | 1<<(syscall.SIGALRM-1) |
		1<<(syscall.SIGXCPU-1) | 1<<(syscall.SIGXFSZ-1) | 1<<(syscall.SIGVTALRM-1) | 1<<(syscall.SIGIO-1) |
		1<<(syscall.SIGPWR-1) | (1<<64 - 1<<(35-1)) // from 35 on; not SIGPROF and 33, which Go lets through before it drops them
)

// Entered reports whether this process began in this package.
func Entered() bool { return entered }

// TakeOver returns the conversation that was begun, if one was. Its memory is the package's.
func TakeOver() (c Conversation, ok bool) {
	return Conversation{
		FD:       agent,
		Unsent:   sent.bytes[unsent:sent.n],
		Received: received.bytes[:received.n],
		Printed:  printed,
		Ahead:    stdin.bytes[:stdin.n],
	}, agent > 0
}

// wordAt returns a word of the stack: first argc, then the arguments, a nil, the environment, a nil.
func wordAt(stack unsafe.Pointer, i int) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Add(stack, i*8))
}

// stringAt does what unsafe.String does, without its call of the runtime.
//
//go:nosplit
func stringAt(p unsafe.Pointer, n int) string {
	return *(*string)(unsafe.Pointer(&[2]uintptr{uintptr(p), uintptr(n)}))
}

//go:nosplit
func cString(p unsafe.Pointer) string {
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return stringAt(p, n)
}

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

// buffer holds a box. In one that is full something is missing. Pages that are not used cost nothing.
type buffer struct {
	n     int
	bytes [2*amp.MaxValue + 4096]byte
}

func (b *buffer) at(i int) unsafe.Pointer { return unsafe.Add(unsafe.Pointer(&b.bytes), i) }
func (b *buffer) text(i, n int) string    { return stringAt(b.at(i), n) }

//go:nosplit
func (b *buffer) addPair(key, value string) { b.addText(key); b.addText(value) }

// addText adds a text behind its length. A text that is too long for one value makes the buffer count as full.
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

//go:nosplit
func (b *buffer) addByte(c byte) {
	if n := b.n; n >= 0 && n < len(b.bytes) {
		b.bytes[n] = c
		b.n = n + 1
	}
}

// pairAt returns a pair and where it ends: 0 if it has not come yet, -1 if it never will.
//
//go:nosplit
func (b *buffer) pairAt(at int) (key, value string, end int) {
	key, end = b.textAt(at, amp.MaxKey)
	if end > 0 && len(key) > 0 {
		value, end = b.textAt(end, amp.MaxValue)
	}
	return key, value, end
}

//go:nosplit
func (b *buffer) textAt(at, limit int) (text string, end int) {
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
