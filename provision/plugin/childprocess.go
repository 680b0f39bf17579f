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

// childProcess is a running executable, as go-plugin wants to be given it (its runner.Runner). It
// dies with this process, however that ends.
type childProcess struct {
	path           string
	env            []string
	socketFolder   string
	stdout, stderr *os.File
	running        atomic.Pointer[os.Process]
	killed         atomic.Bool
	exited         chan struct{} // closed when it has
	stderrDone     chan struct{} // closed when stderr has been read to its end
	exitErr        error         // it ended with; set before exited is closed
	waiter         sync.WaitGroup
}

// drainTimeout bounds how long the end of a process is waited for that closes its connection, and how
// long the pipes of one that has ended are still read: what it has started may hold them open for good.
const drainTimeout = 2 * time.Second

// Start starts the provider's process.
func (p *childProcess) Start(context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot make a pipe: %w", err), outR.Close(), outW.Close())
	}

	p.stdout = outR
	p.stderr = errR
	begun := make(chan error)
	p.waiter.Go(func() { p.runAndWait(begun, outW, errW) })
	return <-begun
}

// runAndWait starts the child, and waits for its end on one thread. The kernel ends the child when the
// thread that made it ends.
func (p *childProcess) runAndWait(begun chan<- error, stdout, stderr *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)

	cmd, err := p.startCommand(stdout, stderr)
	stdout.Close()
	stderr.Close()
	begun <- err
	if err != nil {
		p.exitErr = err
		p.expirePipes(0)
		return
	}

	p.exitErr = cmd.Wait()
	p.expirePipes(drainTimeout)
}

// startCommand starts the process. It retries while the executable is busy, since it may just have been
// written.
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

	p.running.Store(cmd.Process)
	if p.killed.Load() {
		_ = p.Kill(context.Background())
	}
	return cmd, err
}

func (p *childProcess) expirePipes(after time.Duration) {
	for _, pipe := range []*os.File{p.stdout, p.stderr} {
		_ = pipe.SetReadDeadline(time.Now().Add(after)) // of a pipe: never fails
	}
}

// Wait blocks until the process has ended, and returns how.
func (p *childProcess) Wait(context.Context) error {
	<-p.exited
	return p.exitErr
}

// Kill ends the process at once, or as soon as it begins; it may be repeated.
func (p *childProcess) Kill(context.Context) error {
	p.killed.Store(true)
	if running := p.running.Load(); running != nil {
		if err := running.Kill(); !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}

	return nil
}

func (p *childProcess) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// close closes the pipes. The process must have ended, and go-plugin must have read them.
func (p *childProcess) close() {
	p.waiter.Wait()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}

func (p *childProcess) Stdout() io.ReadCloser { return p.stdout }

func (p *childProcess) Stderr() io.ReadCloser {
	return &eofNotifier{File: p.stderr, onEOF: sync.OnceFunc(func() { close(p.stderrDone) })}
}

// eofNotifier is a pipe that calls onEOF when it has been read to its end.
type eofNotifier struct {
	*os.File
	onEOF func()
}

func (e *eofNotifier) Read(b []byte) (int, error) {
	n, err := e.File.Read(b)
	if err != nil {
		e.onEOF()
	}
	return n, err
}

func (p *childProcess) Name() string { return p.path }

func (p *childProcess) ID() string {
	if running := p.running.Load(); running != nil {
		return strconv.Itoa(running.Pid)
	}
	return ""
}

// Diagnose returns "": the callers' errors say it all.
func (*childProcess) Diagnose(context.Context) string { return "" }

// PluginToHost refuses sockets that any user of this host could speak to.
func (*childProcess) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("it listens on a %s socket; only unix sockets are for their owner alone",
			network)
	}
	return network, address, nil
}

// HostToPlugin changes nothing: both live on this host.
func (*childProcess) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}

// stderrLog takes an executable's stderr: it goes to the log, and the last line is kept to explain
// why the process ended.
type stderrLog struct {
	text.LineWriter
	log *slog.Logger

	mu   sync.Mutex
	last string
}

// logLine logs a line of stderr, and keeps it as the last one. After a panic it keeps the panic's first
// line, which says more than the trace after it.
func (l *stderrLog) logLine(line string) {
	line = strings.TrimSpace(toUTF8(line))
	if line == "" {
		return
	}

	// Go-plugin's own.
	if strings.HasPrefix(line, `{"@level":"debug"`) || strings.HasPrefix(line, `{"@level":"trace"`) {
		l.log.Debug("provider says", "line", line)
		return
	}

	l.log.Info("provider says", "line", line)
	l.mu.Lock()
	defer l.mu.Unlock()
	if !strings.HasPrefix(l.last, "panic: ") && !strings.HasPrefix(l.last, "fatal error: ") {
		l.last = line
	}
}

// maxLastOutput limits what stands in an error, in bytes.
const maxLastOutput = 300

func (l *stderrLog) errorSuffix() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last == "" {
		return ""
	}
	return "; it said: " + toUTF8(l.last[:min(len(l.last), maxLastOutput)])
}

// maxLine is how much of a line is kept before it counts as one, in bytes.
const maxLine = 16 << 10
