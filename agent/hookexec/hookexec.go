// Package hookexec runs the process of one hook: which file, with what environment and descriptors,
// where its output goes, and how an agent that died in the middle finds the process again.
//
// It knows nothing of state, queues or hook tools: agent/uniter decides what is
// run and what the outcome means. Only agent/uniter and agent/do import it.
package hookexec

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OutputTimeout is how long a hook's output is read on after its process has exited: a
// daemon that it left behind may hold its descriptors open.
const OutputTimeout = 5 * time.Second

// Stream is one of the two outputs of a hook.
type Stream string

// The two outputs.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Spec is one run of one hook, action or command.
type Spec struct {
	ID       string   // names this run in its record
	Hook     string   // "db-relation-changed"
	Action   string   // instead of the hook: the charm's action of that name
	Command  []string // instead of the hook: a program and its arguments, or one line for a shell
	Debug    *Debug   // instead of the hook: an operator's shell, in which to run it
	CharmDir string   // working directory, absolute
	Env      []string // the whole environment; see Environment

	// Record is the file that names the process before it is released.
	Record string
	// Begin, if set, is called once it is known that there is such a hook.
	Begin func()
	// Output gets every line of output as it comes, without its end, and when it was
	// read. It and Raw are called from one goroutine, which has ended when Run has.
	Output func(s Stream, at time.Time, line string)
	// Raw, if set, gets all output as it is.
	Raw func(s Stream, data []byte)
	// Interrupt, once it is closed, tells the process group to end (SIGTERM); it is
	// killed after Grace. nil: never.
	Interrupt <-chan struct{}
	// Fault, if set, is called at the points of the process's start: it is held
	// back (after-spawn), recorded (after-note), released (after-let-go).
	Fault func(point string)
	// OutputTimeout replaces the constant; for tests.
	OutputTimeout time.Duration
}

// Outcome is how a hook has ended.
type Outcome struct {
	Missing     bool   // there is no such hook, which is success
	Interrupted bool   // it was interrupted, or ctx was done, before it ended by itself
	Failure     string // why it failed, "exit code 1"; empty on success
	Code        int    // the exit code, if that is the failure; else 0

	// Held is how long output was read on after the process's end, since others held
	// it open, if that was a second or more. Left: they still do.
	Held time.Duration
	Left bool
}

// Run runs one hook, and waits for its end and at most OutputTimeout longer for its output.
// When ctx is done first, the hook's process group is killed.
//
// A hook that cannot be started is a failed hook.
func (r *Runner) Run(ctx context.Context, s Spec) Outcome {
	argv, err := s.buildArgv()
	if errors.Is(err, fs.ErrNotExist) {
		return Outcome{Missing: true}
	}

	if s.Begin != nil {
		s.Begin()
	}
	if err != nil {
		return Outcome{Failure: err.Error()}
	}

	out, err := newOutputReader(s.OutputTimeout)
	if err != nil {
		return Outcome{Failure: err.Error()}
	}

	outcome := s.runHeld(ctx, argv, out)
	out.awaitEnd()
	outcome.Held = out.heldFor
	outcome.Left = len(out.leftOpen) > 0
	for _, fd := range out.leftOpen {
		r.discardOutput(fd)
	}
	return outcome
}

// runHeld starts the hook, lets it go once its process is recorded, and waits for its end.
func (s Spec) runHeld(ctx context.Context, argv []string, out *outputReader) Outcome {
	p, err := startHeld(s, argv, out)
	out.startReading(s)
	if err != nil {
		return Outcome{Failure: err.Error()}
	}

	if err := p.release(s, argv[0]); err != nil {
		_ = p.wait(ctx, nil)
		return Outcome{Failure: err.Error()}
	}
	s.faultPoint("after-let-go")

	return p.wait(ctx, s.Interrupt).explainFailure(s, argv[0])
}

func (s Spec) faultPoint(point string) {
	if s.Fault != nil {
		s.Fault(point)
	}
}

// buildArgv returns fs.ErrNotExist for a hook that is missing, which is success. A missing
// action is another error.
func (s Spec) buildArgv() ([]string, error) {
	switch {
	case s.Debug != nil:
		return s.Debug.windowArgv(s)
	case len(s.Command) == 1:
		return []string{"/bin/bash", "-c", s.Command[0]}, nil
	case len(s.Command) > 1:
		return s.Command, nil
	case s.Action == "":
		path, err := findExecutable(s.CharmDir, filepath.Join("hooks", s.Hook))
		return []string{path}, err
	}

	name := filepath.Join("actions", s.Action)
	path, err := findExecutable(s.CharmDir, name)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("the charm has neither %s nor dispatch", name)
	}
	return []string{path}, err
}

// findExecutable returns the charm's dispatch or, without one, the file of the hook or action. It returns
// fs.ErrNotExist if there is neither.
func findExecutable(charmDir, own string) (string, error) {
	if _, err := os.Stat(charmDir); err != nil { // or else every hook would be missing, and succeed
		return "", fmt.Errorf("cannot look at the charm: %v", err)
	}

	for _, name := range []string{"dispatch", own} {
		path := filepath.Join(charmDir, name)
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}

		if err != nil {
			return "", fmt.Errorf("cannot look at %q: %w", name, err)
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG || unix.Access(path, unix.X_OK) != nil {
			return "", fmt.Errorf("%s is not executable", name)
		}

		return path, nil
	}

	return "", fs.ErrNotExist
}

// newOutcome turns the error of [exec.Cmd.Wait] into an outcome.
func newOutcome(err error) Outcome {
	var exit *exec.ExitError
	if err == nil {
		return Outcome{}
	}
	if !errors.As(err, &exit) {
		return Outcome{Failure: err.Error()}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Outcome{Failure: fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), ws.Signal())}
	}

	code := exit.ExitCode()
	return Outcome{Failure: fmt.Sprintf("exit code %d", code), Code: code}
}

// Debug is an operator's tmux session in which a hook is run by hand.
type Debug struct {
	Socket string // of its tmux
	Always bool   // also where the charm has no such hook
	Owner  *int   // the user id that the socket's folder has; nil: not known
}

//go:embed debug.sh
var debugScript string

func (d Debug) windowArgv(s Spec) ([]string, error) {
	path, err := findExecutable(s.CharmDir, filepath.Join("hooks", s.Hook))
	if err != nil && !(d.Always && errors.Is(err, fs.ErrNotExist)) {
		return nil, err
	}
	return []string{"/bin/bash", "-c", debugScript, "debug-hooks", d.Socket, s.Hook, path}, nil
}

// explainFailure adds the fault of the script's first line, which names its interpreter, to a failure. A
// shell only reports that the script, which exists, was not found.
func (o Outcome) explainFailure(s Spec, path string) Outcome {
	if o.Failure == "" || o.Interrupted {
		return o
	}
	name, err := filepath.Rel(s.CharmDir, path)
	line := readFirstLine(path)
	if err != nil || !strings.HasPrefix(line, "#!") {
		return o
	}

	if strings.HasSuffix(line, "\r") {
		o.Failure += fmt.Sprintf(
			": the lines of %s end in CRLF, so it names the interpreter %q: save it with LF only",
			name, line[2:],
		)
	} else if words := strings.Fields(line[2:]); len(words) > 0 && (o.Code == 126 || o.Code == 127) {
		if _, err := os.Stat(words[0]); err != nil { // of what env does not find it says so itself
			o.Failure += fmt.Sprintf(": %s needs the interpreter %q, which does not exist", name, words[0])
		}
	}

	return o
}

// readFirstLine reads as much of the line as the kernel does, without its end.
func readFirstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 255))
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(line)
}
