package site

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"bijou/multicall/console"
	"bijou/state/backoff"
	"bijou/state/childenv"
	"bijou/state/osutil"
)

const (
	portsToTry   = 100 // how many further ports to try, since other units on the host may use the wanted port
	startTimeout = 10 * time.Second
	stopTimeout  = 5 * time.Second
	pollInterval = 10 * time.Millisecond
	lookInterval = time.Second // how often a server checks that its directory still exists
)

// noteFile describes the server of its directory. The server holds a lock on the file while it runs.
const noteFile = "server.json"

// note is the content of noteFile.
type note struct {
	PID    int    `json:"pid"`
	Listen string `json:"listen"` // the requested address
	Port   int    `json:"port"`   // the port that is used
}

// Command is the command line of `bijou tour-server`, which the hooks of the example charms call.
type Command struct {
	Start start `cmd:"" help:"Serve a directory in the background, and print the port."`
	Stop  stop  `cmd:"" help:"End the server of a directory."`
	Serve serve `cmd:"" hidden:"" help:"Serve with the listener and the lock that start passes on."`
}

// start is the command line of `bijou tour-server start`.
type start struct {
	Kind      string `arg:"" enum:"database,blog" help:"Serve a database or a blog."`
	Directory string `arg:"" help:"Serve this directory until it is removed."`
	Listen    string `required:"" placeholder:"HOST:PORT" help:"Listen at this address, or at the next free port."`
}

// Run starts a server, and prints its port as soon as it accepts connections. It first ends the server that
// the directory already has, unless that server has the same --listen. In that case Run starts no server, and
// prints the port of the running one.
func (s start) Run(streams console.Streams) error {
	previous, err := readNote(s.Directory)
	hasSameAddress := err == nil && previous.Listen == s.Listen
	if hasSameAddress && isServed(s.Directory) {
		fmt.Fprintln(streams.Out, previous.Port)
		return nil
	}

	// End the running server, if there is one. stop also removes the note of a server that has ended, which
	// awaitNote could take for the new server's note.
	if err := (stop{Directory: s.Directory}).Run(); err != nil {
		return err
	}

	lock, err := osutil.TryLockFile(filepath.Join(s.Directory, noteFile), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return fmt.Errorf("cannot lock %s in %q: %w", noteFile, s.Directory, err)
	}
	defer lock.Close()

	listener, err := listen(s.Listen)
	if err != nil {
		return err
	}
	defer listener.Close()

	// The server inherits the listener and the lock, which stay open after this process has closed its own files.
	if err := s.spawn(listener, lock); err != nil {
		return fmt.Errorf("cannot start the server: %w", err)
	}
	return s.awaitNote(streams)
}

// listen listens at the address, which is HOST:PORT. If the port is in use, it listens at the next port that
// is free. It tries at most portsToTry further ports.
func listen(address string) (*net.TCPListener, error) {
	host, portText, err := net.SplitHostPort(address)
	if err != nil {
		return nil, console.Usage(fmt.Errorf("--listen %q is not HOST:PORT", address))
	}
	wanted, err := strconv.Atoi(portText)
	if err != nil {
		return nil, console.Usage(fmt.Errorf("--listen %q: the port must be a number", address))
	}

	for port := wanted; ; port++ {
		listener, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err == nil {
			return listener.(*net.TCPListener), nil
		}

		isLast := port == wanted+portsToTry
		if isLast || !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("cannot listen: %w", err)
		}
	}
}

// spawn starts a server that uses the listener and holds the lock. The server has its own session, so that it outlives
// the hook that has called start.
func (s start) spawn(listener *net.TCPListener, lock *os.File) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	socket, err := listener.File()
	if err != nil {
		return err
	}
	defer socket.Close()

	server := exec.Command(self, "tour-server", "serve", s.Kind, s.Directory, "--listen", s.Listen)
	server.Args[0] = "bijou" // the applet that has the command tour-server, whatever the file's name
	// The server does not get the hook's variables.
	server.Env = childenv.New(os.Environ(), childenv.Program)
	server.ExtraFiles = []*os.File{socket, lock}
	server.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := server.Start(); err != nil {
		return err
	}
	return server.Process.Release()
}

// awaitNote waits until the new server has written its note, and prints the server's port. It returns an error
// if there is no note after startTimeout.
func (s start) awaitNote(streams console.Streams) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()

	for {
		running, err := readNote(s.Directory)
		if err == nil && running.Listen == s.Listen {
			fmt.Fprintln(streams.Out, running.Port)
			return nil
		}
		if backoff.Sleep(ctx, pollInterval) != nil {
			return fmt.Errorf("cannot start the server: no %s in %q after %v", noteFile, s.Directory, startTimeout)
		}
	}
}

// stop is the command line of `bijou tour-server stop`.
type stop struct {
	Directory string `arg:"" help:"End the server of this directory."`
}

// Run ends the directory's server, if there is one, waits until it has ended, and removes its note. It returns
// an error if the server has not ended after stopTimeout.
func (s stop) Run() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()

	for isServed(s.Directory) {
		// A server that has just locked the file has no note with its PID yet.
		if running, err := readNote(s.Directory); err == nil {
			// The error does not matter, since the loop checks whether the server has ended.
			_ = syscall.Kill(running.PID, syscall.SIGTERM)
		}
		if backoff.Sleep(ctx, pollInterval) != nil {
			return fmt.Errorf("cannot end the server of %q within %v", s.Directory, stopTimeout)
		}
	}

	err := os.Remove(filepath.Join(s.Directory, noteFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot remove the record of the server: %w", err)
	}
	return nil
}

// isServed reports whether a process holds the lock of the directory's server.
func isServed(dir string) bool {
	lock, err := osutil.TryLockFile(filepath.Join(dir, noteFile), os.O_RDONLY)
	if err == nil {
		lock.Close()
	}
	return errors.Is(err, osutil.ErrLocked)
}

// readNote reads the note about the server of a directory, which may no longer be running.
func readNote(dir string) (n note, err error) {
	text, err := os.ReadFile(filepath.Join(dir, noteFile))
	if err != nil {
		return note{}, err
	}
	err = json.Unmarshal(text, &n)
	return n, err
}

// serve is the command line of the server's process, which spawn starts.
type serve struct {
	Kind      string `arg:""`
	Directory string `arg:""`
	Listen    string `required:""`
}

// Run serves until a signal ends it, or until its directory or its note is removed or replaced.
func (s serve) Run() error {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer cancel()

	// start.spawn passes these files to the process.
	socket := os.NewFile(3, "listener")
	lock := os.NewFile(4, noteFile)
	defer lock.Close()

	listener, err := net.FileListener(socket)
	if err != nil {
		return fmt.Errorf("cannot serve: %w", err)
	}
	if err := s.writeNote(lock, listener); err != nil {
		listener.Close()
		return err
	}

	server := &http.Server{Handler: newHandler(s.Kind, s.Directory), ReadHeaderTimeout: 10 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })

	// Deferred calls run in reverse order. Close must run before Wait, since Serve returns only after Close.
	defer serving.Wait()
	defer server.Close()

	s.awaitEnd(ctx, lock)
	return nil
}

// writeNote writes the note about this process into the locked file.
func (s serve) writeNote(lock *os.File, listener net.Listener) error {
	text, err := json.Marshal(note{PID: os.Getpid(), Listen: s.Listen, Port: listener.Addr().(*net.TCPAddr).Port})
	if err != nil {
		return err
	}

	if err := lock.Truncate(0); err != nil {
		return fmt.Errorf("cannot write %s: %w", noteFile, err)
	}
	if _, err := lock.WriteAt(text, 0); err != nil {
		return fmt.Errorf("cannot write %s: %w", noteFile, err)
	}
	return nil
}

// awaitEnd waits until ctx is done, or until the directory or its note was removed or replaced. After a removal
// or replacement, the path of the note no longer leads to the locked file. awaitEnd also returns if it cannot
// examine the two files.
func (s serve) awaitEnd(ctx context.Context, lock *os.File) {
	for {
		own, err := lock.Stat()
		current, currentErr := os.Stat(filepath.Join(s.Directory, noteFile))
		if err != nil || currentErr != nil || !os.SameFile(own, current) {
			return
		}
		if backoff.Sleep(ctx, lookInterval) != nil {
			return
		}
	}
}
