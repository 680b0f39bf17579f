// Package hookexec runs the process of one hook. It finds the hook's file, sets the process's environment and
// descriptors, and reads the process's output. It also records the process, so that the next agent can find
// the process if this agent dies.
//
// It does not depend on state, queues or hook tools. agent/uniter decides which hook to run, and interprets
// the outcome.
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

// OutputTimeout is how long a hook's output is still read after its process has exited. A daemon that the
// hook has started can hold the output open for longer.
const OutputTimeout = 5 * time.Second

// Stream is one of the two outputs of a hook.
type Stream string

// The two outputs.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Spec describes one run of a hook, an action or a command.
type Spec struct {
	ID       string   // identifies this run in its record
	Hook     string   // the hook's name, "db-relation-changed"
	Action   string   // runs the charm's action of this name instead of the hook
	Command  []string // runs this program with arguments, or a single line for a shell, instead of the hook
	Debug    *Debug   // opens an operator's shell, in which to run the hook by hand
	CharmDir string   // the process's working directory, absolute
	Env      []string // the process's whole environment; see Environment

	// Record is the path of the file in which Run records the process.
	Record string
	// Begin is called before the hook starts, unless the charm does not have the hook. Begin can be nil.
	Begin func()
	// Output gets each line of the hook's output without its newline, and the time at which the line was read.
	// Output and Raw are called from one goroutine, which has ended when Run returns.
	Output func(s Stream, at time.Time, line string)
	// Raw gets all output unchanged. It can be nil.
	Raw func(s Stream, data []byte)
	// When Interrupt is closed, Run ends the process group: with SIGTERM, and after TerminateTimeout with
	// SIGKILL. A nil Interrupt never ends the hook.
	Interrupt <-chan struct{}
	// Fault is called while the process starts: once the process is held back (after-spawn), recorded
	// (after-note) and released (after-let-go). Fault can be nil.
	Fault func(point string)
	// OutputTimeout is set by tests, to replace the constant of that name. 0 stands for the constant.
	OutputTimeout time.Duration
}

// Outcome is the result of a hook that has ended.
type Outcome struct {
	Missing     bool   // the charm does not have the hook, which counts as success
	Interrupted bool   // Interrupt or the end of ctx has ended the hook
	Failure     string // why the hook failed, such as "exit code 1"; empty on success
	Code        int    // the hook's exit code, or 0 if it failed for another reason

	// Held is how long Run continued to read the output after the process had ended, since other processes
	// held the output open. It is 0 if these processes closed the output within a second.
	Held time.Duration
	// Left is true if other processes still held the output open when Run stopped reading.
	Left bool
}

// Run runs one hook, and returns how the hook ended. It waits for the end of the hook's process, and then up to
// OutputTimeout for the end of the hook's output. When ctx is done, Run kills the hook's process group.
//
// For a hook that the charm does not have, Run returns an Outcome with Missing set, unless Debug.Always is set.
// A hook that cannot be started counts as failed.
func (r *Runner) Run(ctx context.Context, s Spec) Outcome {
	argv, err := s.buildArgv()
	if errors.Is(err, fs.ErrNotExist) {
		return Outcome{Missing: true}
	}

	// A hook that exists but cannot be started has also begun: it fails.
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

	outcome := s.runProcess(ctx, argv, out)
	out.awaitEnd()
	outcome.Held = out.heldFor
	outcome.Left = len(out.leftOpen) > 0

	// A daemon that still writes must not block on a full pipe.
	for _, fd := range out.leftOpen {
		r.discardOutput(fd)
	}
	return outcome
}

// runProcess starts the hook's process and holds it back until it is recorded. Then runProcess releases the
// process, and waits for its end.
func (s Spec) runProcess(ctx context.Context, argv []string, out *outputReader) Outcome {
	p, err := startGated(s, argv, out)
	// Start the reader even after an error, since Run waits for the reader, and the reader closes the pipes.
	out.startReading(s)
	if err != nil {
		return Outcome{Failure: err.Error()}
	}

	if err := p.release(s, argv[0]); err != nil {
		// The process ends without running the hook, so its outcome does not matter, and nothing has to interrupt
		// it.
		_ = p.wait(ctx, nil)
		return Outcome{Failure: err.Error()}
	}
	s.faultPoint("after-let-go")

	return p.wait(ctx, s.Interrupt).explainFailure(s, argv[0])
}

// faultPoint tells the Fault of a test, if there is one, that the process has reached the point.
func (s Spec) faultPoint(point string) {
	if s.Fault != nil {
		s.Fault(point)
	}
}

// buildArgv returns the command line of the hook's process. It returns [fs.ErrNotExist] if the charm does not
// have the hook, unless Debug.Always is set. For a missing action it returns a different error, since a missing
// action is a failure.
func (s Spec) buildArgv() ([]string, error) {
	switch {
	case s.Debug != nil:
		return s.Debug.windowArgv(s)
	case len(s.Command) == 1: // a line for a shell
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

// findExecutable returns the path of the charm's file dispatch. If the charm has no dispatch, it returns the
// path of file, which is the file of a hook or action in charmDir. It returns fs.ErrNotExist if neither file
// exists, and a different error if the file that it finds is not executable.
func findExecutable(charmDir, file string) (string, error) {
	// A missing hook counts as success. If the whole charm is missing, the hook must fail instead. So this
	// error does not wrap fs.ErrNotExist.
	if _, err := os.Stat(charmDir); err != nil {
		return "", fmt.Errorf("cannot examine the charm: %v", err)
	}

	for _, name := range []string{"dispatch", file} {
		path := filepath.Join(charmDir, name)
		var st unix.Stat_t
		err := unix.Stat(path, &st)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("cannot examine %q: %w", name, err)
		}

		isRegular := st.Mode&unix.S_IFMT == unix.S_IFREG
		if !isRegular || unix.Access(path, unix.X_OK) != nil {
			return "", fmt.Errorf("%s is not executable", name)
		}

		return path, nil
	}

	return "", fs.ErrNotExist
}

// newOutcome turns the error of [exec.Cmd.Wait] into an outcome.
func newOutcome(err error) Outcome {
	if err == nil {
		return Outcome{}
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		return Outcome{Failure: err.Error()}
	}
	if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return Outcome{Failure: fmt.Sprintf("killed by signal %d (%s)", ws.Signal(), ws.Signal())}
	}

	code := exit.ExitCode()
	return Outcome{Failure: fmt.Sprintf("exit code %d", code), Code: code}
}

// Debug is a tmux session in which an operator runs a hook by hand.
type Debug struct {
	Socket string // the socket of its tmux server
	Always bool   // open the session even if the charm does not have the hook
	Owner  *int   // the user id of the owner of the socket's directory, or nil if it is unknown
}

//go:embed debug.sh
var debugScript string

// windowArgv returns the command line of a process that opens a window for the hook in the tmux session. Like
// findExecutable, it returns [fs.ErrNotExist] if the charm does not have the hook, unless d.Always is set.
func (d Debug) windowArgv(s Spec) ([]string, error) {
	path, err := findExecutable(s.CharmDir, filepath.Join("hooks", s.Hook))
	opensAnyway := errors.Is(err, fs.ErrNotExist) && d.Always
	if err != nil && !opensAnyway {
		return nil, err
	}

	// For a missing hook, path is empty.
	return []string{"/bin/bash", "-c", debugScript, "debug-hooks", d.Socket, s.Hook, path}, nil
}

// explainFailure returns the outcome. If the hook has failed, it adds an explanation in two cases: the #! line of
// the hook's script ends in a carriage return, or the script could not start and that line names an interpreter
// that does not exist. A shell may then report only that it cannot find the script. path is the path of the
// program that was run.
func (o Outcome) explainFailure(s Spec, path string) Outcome {
	if o.Failure == "" || o.Interrupted {
		return o // no explanation is needed
	}
	name, err := filepath.Rel(s.CharmDir, path)
	if err != nil {
		return o
	}
	interpreter, ok := strings.CutPrefix(readFirstLine(path), "#!")
	if !ok {
		return o
	}

	if strings.HasSuffix(interpreter, "\r") {
		o.Failure += fmt.Sprintf(
			": the lines of %s end in CRLF, so the system looks for an interpreter %q: save the file with LF only",
			name, interpreter,
		)
		return o
	}

	words := strings.Fields(interpreter)
	couldNotStart := o.Code == 126 || o.Code == 127 // the exit codes of a shell
	if len(words) == 0 || !couldNotStart {
		return o
	}

	// If the interpreter is env, env itself reports the program that it does not find.
	if _, err := os.Stat(words[0]); err != nil {
		o.Failure += fmt.Sprintf(": %s needs the interpreter %q, which does not exist", name, words[0])
	}
	return o
}

// readFirstLine returns the file's first line without its newline, up to the 255 bytes of a #! line that the
// kernel reads. It returns an empty string if the file cannot be opened.
func readFirstLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 255)) // after an error, the bytes that were read before
	line, _, _ := bytes.Cut(head, []byte("\n"))
	return string(line)
}
