package server_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "bijou/hookenv/client" // makes this binary a hook tool when it is called by a tool's name
	"bijou/hookenv/hookapi"
	"bijou/hookenv/server"
	"bijou/hookenv/tools"
	"bijou/testscripts/conformance/hookapitest"
	"bijou/testscripts/conformance/recorded"
	"bijou/testscripts/kit/need"
)

// socketPath returns a path in a new directory that is short enough for a socket.
func socketPath(t testing.TB) string {
	folder, err := os.MkdirTemp("", "bijou")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	return filepath.Join(folder, "s")
}

func start(t testing.TB) *server.Server {
	s, err := server.Listen(socketPath(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return s
}

// hook calls tools as processes, as a hook does. The processes run the test binary under the name of a tool,
// so that hookenv/client handles the call before any test runs.
type hook struct {
	socket, id, directory string
	program               []string // runs this command instead of the test's binary, if set; TOOL in it stands for the tool's name
}

// openHook returns a running hook behind a socket.
func openHook(t testing.TB, s recorded.Setup) recorded.Caller {
	running := hookapitest.NewMemory(t, s.World).Start(s.Facts)
	t.Cleanup(running.Abort)
	return serveHook(t, running, s.Directory)
}

func serveHook(t testing.TB, h hookapi.Hook, directory string) hook {
	s := start(t)
	return hook{socket: s.Path(), id: register(s, h), directory: directory}
}

func (h hook) Call(t testing.TB, step recorded.Step) recorded.Outcome {
	var stdin *os.File // nil means /dev/null
	if step.Stdin != nil {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		done := make(chan struct{})
		go func() { defer close(done); defer w.Close(); w.WriteString(*step.Stdin) }()
		defer func() { r.Close(); <-done }()
		stdin = r
	}
	return h.call(t, stdin, step.Argv...)
}

// command returns an unstarted command for a tool. If stdin is nil, it is /dev/null.
func (h hook) command(t testing.TB, stdin *os.File, argv ...string) *exec.Cmd {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := &exec.Cmd{Path: self, Args: argv, Dir: h.directory}
	if n := len(h.program); n == 1 {
		cmd.Path = h.program[0]
	} else if n > 1 {
		cmd.Path, cmd.Args = h.program[0], slices.Concat(h.program, argv[1:])
		cmd.Args[slices.Index(cmd.Args, "TOOL")] = argv[0]
	}
	// By default the race detector makes a process sleep for a second at its end.
	cmd.Env = append(os.Environ(), "JUJU_SOCKET="+h.socket, "JUJU_CLIENT_ID="+h.id, "GORACE=atexit_sleep_ms=0")
	if stdin != nil {
		cmd.Stdin = stdin
	}
	return cmd
}

func (h hook) call(t testing.TB, stdin *os.File, argv ...string) recorded.Outcome {
	cmd := h.command(t, stdin, argv...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return recorded.Outcome{Exit: cmd.ProcessState.ExitCode(), Stdout: out.String(), Stderr: errs.String()}
}

func TestRecordedThroughSocket(t *testing.T) {
	need.Whole(t)
	recorded.Run(t, recorded.Cases(t), tools.Supported, openHook)
}

func TestDerivedThroughSocket(t *testing.T) {
	need.Whole(t)
	for _, name := range []string{"classic", "modern"} {
		f, err := recorded.Read("../tools/testdata/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { recorded.Run(t, f, tools.Supported, openHook) })
	}
}

// TestMain refuses to run the tests under a tool's name without a hook, because the processes would then
// start each other forever.
func TestMain(m *testing.M) {
	if name := filepath.Base(os.Args[0]); !strings.HasSuffix(name, ".test") && !strings.HasPrefix(name, "__debug") {
		os.Stderr.WriteString("a hook tool without a client id reached the tests\n")
		os.Exit(99)
	}
	os.Exit(m.Run())
}
