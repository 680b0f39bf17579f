package early_test

import (
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// prepare makes what a command gets from its caller; finish returns what of it can be seen afterwards.
type prepare = func(t testing.TB, a *agent, cmd *exec.Cmd) (finish func() string)

// Ways of FuzzRoads, behind all signals.
const (
	resetInput = 65 + iota
	resetOutput
	fullOutput
	closedOutput
	allWays
)

// noWays are signals that stop a process, those for which a Go program writes its goroutines, and two
// that it drops, but would die of if one had come before its start.
var noWays = []byte{3, 4, 5, 6, 7, 8, 11, 16, 19, 20, 21, 22, 27, 31, 33}

// findWay returns what a caller may do to a tool: 0: nothing; a signal, while it waits; one of the above.
func findWay(way byte, stdin string) prepare {
	switch way {
	case resetInput:
		return resetting(0, stdin)
	case resetOutput:
		return resetting(1, "")
	case fullOutput:
		return output("/dev/full")
	case closedOutput:
		return output("")
	}
	return signalled(syscall.Signal(way), stdin)
}

func signalled(s syscall.Signal, stdin string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		cmd.Stdin = strings.NewReader(stdin)
		a.before = func() { syscall.Kill(a.pid, s) }
		return func() string { return cmd.ProcessState.String() }
	}
}

// resetting has one descriptor be a connection that is reset before the tool is answered.
func resetting(fd int, stdin string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		near, far := connect(t)
		if far.Write([]byte(stdin)); fd == 0 {
			cmd.Stdin = near
		} else {
			cmd.Stdout = near
		}
		a.before = func() { far.SetLinger(0); far.Close() }
		return func() string { near.Close(); return "" }
	}
}

// output has stdout be a file, or with no path a pipe that nobody reads.
func output(path string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		r, w, err := os.Pipe()
		if err == nil && path != "" {
			w.Close()
			w, err = os.OpenFile(path, os.O_WRONLY, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		cmd.Stdout = w
		return func() string { w.Close(); return "" }
	}
}

// connect returns both ends of a connection.
func connect(t testing.TB) (near *os.File, far *net.TCPConn) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	dialled, err := net.DialTCP("tcp", nil, listener.Addr().(*net.TCPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer dialled.Close()
	if far, err = listener.AcceptTCP(); err != nil {
		t.Fatal(err)
	}
	if near, err = dialled.File(); err != nil {
		t.Fatal(err)
	}
	return near, far
}

// executeAs names a program for this one to become, with more of an environment than os/exec
// passes on, which has each variable once.
const (
	executeAs = "BIJOU_TEST_EXECUTE"
	second    = "BIJOU_TEST_SECOND"
)

// twice has a variable be there a second time.
func twice(variable string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd.Env = append(cmd.Env, executeAs+"="+cmd.Path, second+"="+variable)
		cmd.Path = self
		return func() string { return "" }
	}
}

// becomeOther ends where it has nothing to do.
func becomeOther() error {
	path := os.Getenv(executeAs)
	if path == "" {
		return nil
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BIJOU_TEST_") })
	return syscall.Exec(path, os.Args, append(env, os.Getenv(second)))
}
