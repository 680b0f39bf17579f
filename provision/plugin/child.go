package plugin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// child is an executable at work, as go-plugin wants to be given it (its
// runner.Runner). It dies with this process, however that ends.
type child struct {
	path           string
	env            []string
	sockets        string // the folder of its socket
	stdout, stderr *os.File
	running        atomic.Pointer[os.Process]
	killed         atomic.Bool
	exited         chan struct{} // closed when it has
	heard          chan struct{} // closed when stderr has been read to its end
	how            error         // it ended with; set before exited is closed
	keeper         sync.WaitGroup
}

// lastWords is how long the pipes of a process that has ended are still read:
// what it has started may hold them open for good.
const lastWords = 500 * time.Millisecond

// Start starts it.
func (p *child) Start(context.Context) error {
	outR, outW, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	errR, errW, err := os.Pipe()
	if err != nil {
		return errors.Join(fmt.Errorf("cannot make a pipe: %w", err), outR.Close(), outW.Close())
	}
	p.stdout, p.stderr = outR, errR
	begun := make(chan error)
	p.keeper.Go(func() { p.keep(begun, outW, errW) })
	return <-begun
}

// keep starts the process and waits for it. The kernel ends the child when the
// thread that made it ends, so that one is kept, too.
func (p *child) keep(begun chan<- error, stdout, stderr *os.File) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.exited)
	cmd, err := p.start(stdout, stderr)
	stdout.Close()
	stderr.Close()
	begun <- err
	if err != nil {
		p.how = err
		p.hangUp(0)
		return
	}
	p.how = cmd.Wait()
	p.hangUp(lastWords)
}

// start tries again while the executable counts as being written: a child that was
// forked at the wrong moment holds a writing descriptor until its exec.
func (p *child) start(stdout, stderr *os.File) (*exec.Cmd, error) {
	for end := time.Now().Add(time.Second); ; time.Sleep(5 * time.Millisecond) {
		cmd := &exec.Cmd{
			Path: p.path, Args: []string{filepath.Base(p.path)}, Env: p.env, Dir: "/", Stdout: stdout, Stderr: stderr,
			SysProcAttr: &syscall.SysProcAttr{Pdeathsig: syscall.SIGTERM},
		}
		err := cmd.Start()
		if errors.Is(err, syscall.ETXTBSY) && time.Now().Before(end) {
			continue
		}
		p.running.Store(cmd.Process)
		if p.killed.Load() {
			_ = p.Kill(context.Background())
		}
		return cmd, err
	}
}

// hangUp has readers of the pipes end after that time.
func (p *child) hangUp(after time.Duration) {
	for _, pipe := range []*os.File{p.stdout, p.stderr} {
		_ = pipe.SetReadDeadline(time.Now().Add(after)) // of a pipe: never fails
	}
}

// Wait returns when the process has ended, with how.
func (p *child) Wait(context.Context) error {
	<-p.exited
	return p.how
}

// Kill ends it at once, or as soon as it begins; it may be repeated.
func (p *child) Kill(context.Context) error {
	p.killed.Store(true)
	if running := p.running.Load(); running != nil {
		if err := running.Kill(); !errors.Is(err, os.ErrProcessDone) {
			return err
		}
	}
	return nil
}

// dead tells if it has ended.
func (p *child) dead() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// close frees what it held, once it has ended and go-plugin has read its pipes.
func (p *child) close() {
	p.keeper.Wait()
	_ = p.stdout.Close()
	_ = p.stderr.Close()
}

// Stdout is where it says its address.
func (p *child) Stdout() io.ReadCloser { return p.stdout }

// Stderr is where it says everything else.
func (p *child) Stderr() io.ReadCloser {
	return &ear{File: p.stderr, end: sync.OnceFunc(func() { close(p.heard) })}
}

// ear is a pipe that tells when it has been read to its end.
type ear struct {
	*os.File
	end func()
}

// Read reads.
func (e *ear) Read(b []byte) (int, error) {
	n, err := e.File.Read(b)
	if err != nil {
		e.end()
	}
	return n, err
}

// Name is its path.
func (p *child) Name() string { return p.path }

// ID is its process id.
func (p *child) ID() string {
	if running := p.running.Load(); running != nil {
		return strconv.Itoa(running.Pid)
	}
	return ""
}

// Diagnose has nothing to add: the errors are worded elsewhere.
func (*child) Diagnose(context.Context) string { return "" }

// PluginToHost refuses sockets that any user of this host could speak to.
func (*child) PluginToHost(network, address string) (string, string, error) {
	if network != "unix" {
		return "", "", fmt.Errorf("it listens on a %s socket; only unix sockets are for their owner alone", network)
	}
	return network, address, nil
}

// HostToPlugin changes nothing: both live on this host.
func (*child) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
