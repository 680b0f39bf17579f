package early_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"bijou/hookenv/amp"
	"bijou/testscripts/hosts/versions"
)

// ordinary is an environment variable that makes a hook tool skip the early client. The early client leaves
// the call to the ordinary client if GODEBUG is set, since only Go's runtime handles GODEBUG.
const ordinary = "GODEBUG=madvdontneed=1"

// limit limits the wait for events that should happen immediately.
const limit = 60 * time.Second

// folder contains the files that are built once for all inputs of a fuzzer.
var folder string

// agent serves one connection.
type agent struct {
	listener net.Listener
	answers  [2]string // the answers to the first box and to the second, which contains a file
	done     chan struct{}
	heard    []byte // everything that the client has sent
	pid      int    // the client's process id, read before the first answer
	resident int    // the client's resident memory in KiB
	started  chan struct{}
	before   func() // called before the first answer
}

func box(pairs ...string) string {
	wire := amp.Append(nil, "_answer", "1")
	for i := 0; i < len(pairs); i += 2 {
		wire = amp.Append(wire, pairs[i], pairs[i+1])
	}
	return string(amp.End(wire))
}

func startAgent(t testing.TB, first, second string) *agent {
	t.Helper()
	place, err := os.MkdirTemp("", "bijou")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", filepath.Join(place, "s"))
	if err != nil {
		t.Fatal(err)
	}
	a := &agent{listener: listener, answers: [2]string{first, second}, done: make(chan struct{}), started: make(chan struct{}), before: func() {}}
	go a.serve()
	t.Cleanup(func() { listener.Close(); <-a.done; os.RemoveAll(place) })
	return a
}

// serve closes its side after its last answer, so that no client waits forever.
func (a *agent) serve() {
	defer close(a.done)
	conn, err := a.listener.Accept()
	if err != nil {
		return
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(limit))
	d := amp.Decoder{Limit: 64 << 20}
	if !a.hear(conn, &d) {
		return
	}
	<-a.started
	a.measure()
	a.before()
	if io.WriteString(conn, a.answers[0]); wantsFile(a.answers[0]) && a.hear(conn, &d) {
		io.WriteString(conn, a.answers[1])
	}
	conn.(*net.UnixConn).CloseWrite()
	for a.hear(conn, &d) {
	}
}

// hear reads until a box is complete.
func (a *agent) hear(conn net.Conn, d *amp.Decoder) bool {
	chunk := make([]byte, 64<<10)
	for {
		if box, err := d.Next(); box != nil || err != nil {
			return err == nil
		}
		n, err := conn.Read(chunk)
		a.heard = append(a.heard, chunk[:n]...)
		if d.Feed(chunk[:n]); n == 0 && err != nil {
			return false
		}
	}
}

func (a *agent) measure() {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", a.pid))
	if _, rest, found := strings.Cut(string(status), "VmHWM:"); err == nil && found {
		fmt.Sscan(rest, &a.resident)
	}
}

func wantsFile(answer string) bool {
	d := amp.Decoder{Limit: 64 << 20}
	d.Feed([]byte(answer))
	box, err := d.Next()
	return err == nil && box.Has("want") && !box.Has("_error_code")
}

// command returns a tool under that name with these arguments.
func (a *agent) command(binary string, argv ...string) *exec.Cmd {
	cmd := &exec.Cmd{Path: binary, Args: argv, Env: []string{"JUJU_CLIENT_ID=x", "JUJU_SOCKET=" + a.listener.Addr().String()}}
	if emulator, err := exec.LookPath(os.Getenv("BIJOU_TEST_EMULATOR")); err == nil {
		cmd.Path, cmd.Args = emulator, append([]string{emulator, "-0", argv[0], binary}, argv[1:]...)
	}
	return cmd
}

// outcome contains everything about a call that an observer can see.
type outcome struct {
	Heard, Stdout, Stderr, Written string
	Exit                           int
}

func (a *agent) run(cmd *exec.Cmd) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	var stdout, stderr bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &stdout
	}
	cmd.Stderr = &stderr
	cmd.WaitDelay = time.Second
	if err = cmd.Start(); err != nil {
		close(a.started)
		return o, err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	a.pid = cmd.Process.Pid
	close(a.started)
	if err = cmd.Wait(); errors.As(err, new(*exec.ExitError)) || errors.Is(err, syscall.EPIPE) {
		err = nil
	}
	a.listener.Close()
	<-a.done
	if ctx.Err() != nil {
		err = errors.New("it did not end")
	}
	return outcome{Heard: string(a.heard), Stdout: stdout.String(), Stderr: stderr.String(), Exit: cmd.ProcessState.ExitCode()}, err
}

// buildOnce builds the program once for each process.
var buildOnce = sync.OnceValues(func() (string, error) {
	var err error
	if folder, err = os.MkdirTemp("", "bijou"); err != nil {
		return "", err
	}
	path := filepath.Join(folder, "hooktool")
	out, err := exec.Command("../../../.ci/build", path, program).CombinedOutput()
	if err != nil {
		err = fmt.Errorf("cannot build: %w\n%s", err, out)
	}
	return path, err
})

func build(t testing.TB) string {
	t.Helper()
	if os.Getenv("BIJOU_TEST_EMULATOR") != "" {
		return versions.Build(t, []string{"GOARCH=arm64"}, program)
	}
	path, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return path
}
