package early_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"bijou/testscripts/kit/need"
)

// prepare sets up what a command gets from its caller. finish returns the visible result.
type prepare = func(t testing.TB, a *agent, cmd *exec.Cmd) (finish func() string)

// These ways to treat a tool have the numbers after those of all signals.
const (
	resetInput = 65 + iota
	resetOutput
	fullOutput
	closedOutput
	allWays
)

// noWays lists signals under which the early and the ordinary client end differently, or do not end. Some stop a
// process, and some make a Go program print its goroutines. Go's runtime ignores two more, which would kill the
// process before the runtime starts.
var noWays = []byte{3, 4, 5, 6, 7, 8, 11, 16, 19, 20, 21, 22, 27, 31, 33}

// findWay returns how a caller treats a tool. With 0 the caller does nothing. Other numbers mean
// a signal while the tool waits, or one of the ways above.
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
	return signalled(stdin, syscall.Signal(way))
}

// signalled sends signals while the tool waits for the agent. It gives each signal time to take effect.
func signalled(stdin string, signals ...syscall.Signal) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		cmd.Stdin = strings.NewReader(stdin)
		a.before = func() {
			for i, s := range signals {
				if i > 0 {
					time.Sleep(20 * time.Millisecond)
				}
				syscall.Kill(a.pid, s)
			}
		}
		return func() string { return cmd.ProcessState.String() }
	}
}

// resetting replaces one descriptor with a connection that is reset before the tool gets its answer.
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

// output replaces stdout with a file or, without a path, with a pipe that nobody reads.
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

// typed replaces stdin with a terminal.
func typed(text string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		keyboard, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
		if err != nil {
			need.Skip(t, "terminals", err)
		}
		number, err := unix.IoctlGetInt(int(keyboard.Fd()), unix.TIOCGPTN)
		err = errors.Join(err, unix.IoctlSetPointerInt(int(keyboard.Fd()), unix.TIOCSPTLCK, 0))
		terminal, openErr := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
		if err := errors.Join(err, openErr); err != nil {
			t.Fatal(err)
		}
		cmd.Stdin = terminal
		a.before = func() { keyboard.WriteString(text + "\n\x04") }
		return func() string { terminal.Close(); keyboard.Close(); return "" }
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

// fed replaces stdin with a pipe.
func fed(text string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		cmd.Stdin = strings.NewReader(text)
		return func() string { return "" }
	}
}

// through lets a shell call the tool. The shell prepares the descriptors.
func through(script string) prepare {
	return func(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
		for name, text := range map[string]string{"short": "short", "long": strings.Repeat("0123456789", 20_000), "out": ""} {
			if err := os.WriteFile(filepath.Join(cmd.Dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		link := filepath.Join(cmd.Dir, "relation-get")
		if err := os.Symlink(cmd.Path, link); err != nil {
			t.Fatal(err)
		}
		cmd.Path, cmd.Args = "/bin/bash", append([]string{"bash", "-c", script, "./relation-get"}, cmd.Args[1:]...)
		return func() string {
			text, err := os.ReadFile(filepath.Join(cmd.Dir, "out"))
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}

// farSocket returns a script that calls the tool with a path of length bytes to the agent's socket.
func farSocket(length int) string {
	return fmt.Sprintf(`s=$PWD/s; while ((${#s} < %d)); do s+=s; done; ln -s "$JUJU_SOCKET" "$s"; JUJU_SOCKET=$s exec "$0" "$@"`, length)
}

// fullPipe replaces stdout with a full pipe that another process has made non-blocking. It reads the pipe
// once the tool has waited.
func fullPipe(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fd := int(w.Fd())
	cmd.Stdout = w
	read, full := make(chan string), make(chan bool)
	a.before = func() { // the start of a command makes its descriptors blocking
		syscall.SetNonblock(fd, true)
		for n, err := 1, error(nil); n > 0 && err == nil; {
			n, err = syscall.Write(fd, make([]byte, 4096))
		}
		close(full)
	}
	go func() {
		<-full
		time.Sleep(50 * time.Millisecond)
		text, _ := io.ReadAll(r)
		read <- string(text)
	}()
	return func() string {
		w.Close()
		text := <-read
		r.Close()
		return text
	}
}

// slowStdin replaces stdin with a pipe that another process has made non-blocking. It writes one part of the
// input at the start and the rest later.
func slowStdin(t testing.TB, a *agent, cmd *exec.Cmd) func() string {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	fd := int(r.Fd())
	a.before = func() { syscall.SetNonblock(fd, true) }
	cmd.Stdin = r
	w.WriteString("early ")
	go func() {
		time.Sleep(100 * time.Millisecond)
		w.WriteString("late")
		w.Close()
	}()
	return func() string { r.Close(); return "" }
}

// executeAs is the variable with the program that the test binary executes in its place. The program gets the
// variable in second twice, which os/exec does not allow.
const (
	executeAs = "BIJOU_TEST_EXECUTE"
	second    = "BIJOU_TEST_SECOND"
)

// twice puts a variable into the environment a second time.
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

// becomeOther executes the program that the environment names, if any.
func becomeOther() error {
	path := os.Getenv(executeAs)
	if path == "" {
		return nil
	}
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "BIJOU_TEST_") })
	return syscall.Exec(path, os.Args, append(env, os.Getenv(second)))
}
