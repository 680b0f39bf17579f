package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"bijou/state/osutil"
	"bijou/state/text"
)

// childProcess is a running executable. It implements go-plugin's runner.Runner. The kernel sends SIGTERM to
// the executable when this process ends for any reason.
type childProcess struct {
	path           string
	env            []string
	socketFolder   string
	stdout, stderr *os.File
	running        atomic.Pointer[os.Process]
	killed         atomic.Bool
	exited         chan struct{} // closed when the process has exited
	stderrDone     chan struct{} // closed when stderr has been read to its end
	exitErr        error         // the result of the process, set before exited is closed
	waiter         sync.WaitGroup
}

// drainTimeout limits the wait for the exit of a process that has closed its connection. It also limits how
// long the pipes are read after the process has exited, since the process's children can keep them open.
const drainTimeout = 2 * time.Second

// Start starts the provider's process, and returns when the process has started or cannot start.
func (p *childProcess) Start(context.Context) error {
	stdout, stdoutWriter, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot create a pipe: %w", err)
	}
	stderr, stderrWriter, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot create a pipe: %w", err), stdout.Close(), stdoutWriter.Close())
	}

	p.stdout = stdout
	p.stderr = stderr
	started := make(chan error)
	p.waiter.Go(func() { p.runAndWait(started, stdoutWriter, stderrWriter) })
	return <-started
}

// runAndWait starts the process and waits for its exit. It sends the result of the start to started. It stays
// on one thread, since the kernel signals the process when the thread that has started it ends. It closes this
// process's copies of stdout and stderr, the write ends of the pipes.
func (p *childProcess) runAndWait(started chan<- error, stdout, stderr *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)

	cmd, err := p.startCommand(stdout, stderr)
	stdout.Close()
	stderr.Close()
	started <- err
	if err != nil {
		p.exitErr = err
		p.expirePipes(0) // there is no output to read
		return
	}

	p.exitErr = cmd.Wait()
	p.expirePipes(drainTimeout) // the time to read the last output
}

// startCommand starts the process. It retries for up to a second while the executable is busy, which happens if
// the executable was just written.
func (p *childProcess) startCommand(stdout, stderr *os.File) (cmd *exec.Cmd, err error) {
	err = osutil.RetryBusy(time.Second, func() error {
		cmd = &exec.Cmd{
			Path:        p.path,
			Args:        []string{filepath.Base(p.path)},
			Env:         p.env,
			Dir:         "/",
			Stdout:      stdout,
			Stderr:      stderr,
			SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM},
		}
		return cmd.Start()
	})

	// The process is nil if the start has failed.
	p.running.Store(cmd.Process)
	if p.killed.Load() {
		// Kill may have been called before there was a process, so repeat it. No caller waits for this error.
		_ = p.Kill(context.Background())
	}
	return cmd, err
}

// expirePipes makes reads from the pipes fail after the given time, so that readers do not wait for children
// of the process.
func (p *childProcess) expirePipes(after time.Duration) {
	for _, pipe := range []*os.File{p.stdout, p.stderr} {
		// This never fails for a pipe.
		_ = pipe.SetReadDeadline(time.Now().Add(after))
	}
}

// Wait blocks until the process has exited, and returns its result.
func (p *childProcess) Wait(context.Context) error {
	<-p.exited
	return p.exitErr
}

// Kill kills the process at once, or as soon as it starts. It can be repeated. It returns nil if the process
// has already ended.
func (p *childProcess) Kill(context.Context) error {
	p.killed.Store(true)
	running := p.running.Load()
	if running == nil {
		return nil
	}

	err := running.Kill()
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// hasExited reports whether the process has exited, or could not start.
func (p *childProcess) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// close closes the pipes. The process must have exited, and go-plugin must have read the pipes.
func (p *childProcess) close() {
	p.waiter.Wait()
	// Nobody reads the pipes any more, so errors do not matter.
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}

// Stdout returns the pipe with the process's stdout.
func (p *childProcess) Stdout() io.ReadCloser { return p.stdout }

// Stderr returns the pipe with the process's stderr. It closes stderrDone when the pipe has been read to its
// end.
func (p *childProcess) Stderr() io.ReadCloser {
	return &eofNotifier{File: p.stderr, onEOF: sync.OnceFunc(func() { close(p.stderrDone) })}
}

// eofNotifier is a pipe that calls onEOF when it has been read to its end, or cannot be read.
type eofNotifier struct {
	*os.File
	onEOF func()
}

// Read reads from the pipe. It calls onEOF after an error, such as io.EOF.
func (e *eofNotifier) Read(b []byte) (int, error) {
	n, err := e.File.Read(b)
	if err != nil {
		e.onEOF()
	}
	return n, err
}

// Name returns the path of the executable.
func (p *childProcess) Name() string { return p.path }

// ID returns the PID of the process, or "" if no process was started.
func (p *childProcess) ID() string {
	if running := p.running.Load(); running != nil {
		return strconv.Itoa(running.Pid)
	}
	return ""
}

// Diagnose returns "", since the callers' errors already contain the diagnosis.
func (*childProcess) Diagnose(context.Context) string { return "" }

// PluginToHost returns the provider's address unchanged. It returns an error unless the provider listens on a Unix
// socket, since any user of this host could use other kinds of sockets.
func (*childProcess) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("the provider listens on a %s socket: want a unix socket, which other users cannot reach",
			network)
	}
	return network, address, nil
}

// HostToPlugin returns the address unchanged, since both processes are on this host.
func (*childProcess) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// stderrLog writes an executable's stderr to the log. It keeps the last line, which explains why the
// process has exited.
type stderrLog struct {
	text.LineWriter
	log *slog.Logger

	mu   sync.Mutex
	last string
}

// logLine logs a line of stderr, and keeps it as the last line. It does not keep go-plugin's messages
// for debugging and tracing. After a panic it keeps the first line of the panic, which explains more than the
// stack trace.
func (l *stderrLog) logLine(line string) {
	line = strings.TrimSpace(toUTF8(line))
	if line == "" {
		return
	}

	// The go-plugin library in the provider writes these lines, for its own developers.
	if strings.HasPrefix(line, `{"@level":"debug"`) || strings.HasPrefix(line, `{"@level":"trace"`) {
		l.log.Debug("provider says", "line", line)
		return
	}

	l.log.Info("provider says", "line", line)
	l.mu.Lock()
	defer l.mu.Unlock()
	hasPanicked := strings.HasPrefix(l.last, "panic: ") || strings.HasPrefix(l.last, "fatal error: ")
	if !hasPanicked {
		l.last = line
	}
}

// maxLastOutput limits the last line in an error, in bytes.
const maxLastOutput = 300

// errorSuffix returns a clause for the end of an error message, with the line that logLine has kept. It cuts the line
// after maxLastOutput bytes. It returns "" if there is no line.
func (l *stderrLog) errorSuffix() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return ""
	}
	return "; its output: " + toUTF8(l.last[:min(len(l.last), maxLastOutput)])
}

// maxLine limits a line of output, in bytes. A longer line is split.
const maxLine = 16 << 10
