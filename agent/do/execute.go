package do

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"bijou/state/charm"
	"bijou/state/osutil"
)

// Streams are the command's standard streams. The command inherits the streams that are files.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// execute runs the command, or a shell if there is no command, and returns its exit code. It forwards signals to
// the command. If the command cannot be run, execute returns an error with an exit code that is not 0.
func (r *run) execute(d workDir, client string) (exit int, err error) {
	argv := r.Command
	if argv == nil {
		if argv, err = r.shellArgv(d); err != nil {
			return 1, err
		}
	}

	path, err := findCommand(argv[0], d.toolsPath())
	if err != nil {
		return explainStartError(argv, err)
	}

	cmd := exec.Cmd{
		Path:   path,
		Args:   argv,
		Env:    r.buildEnv(d, client),
		Stdin:  r.Streams.In,
		Stdout: r.Streams.Out,
		Stderr: r.Streams.Err,
	}

	// Catch signals before the command starts, so that none of them ends this process.
	relay := newSignalRelay()
	defer relay.close()
	if err := cmd.Start(); err != nil {
		return explainStartError(argv, err)
	}

	relay.forwardTo(cmd.Process)
	err = cmd.Wait()
	if errors.As(err, new(*exec.ExitError)) {
		return exitCode(cmd.ProcessState), nil
	}
	if err != nil {
		return 1, fmt.Errorf("cannot run %q: %w", argv[0], err)
	}

	return 0, nil
}

// findCommand finds a command as a shell does, except that a hook tool precedes all programs on PATH. tools
// is the directory of the hook tools.
func findCommand(name, tools string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}

	tool := filepath.Join(tools, name)
	if name != "" { // otherwise tool is the directory itself
		if _, err := os.Stat(tool); err == nil {
			return tool, nil
		}
	}

	return exec.LookPath(name)
}

// explainStartError returns the exit code and the error for a command that could not be started. The operator
// may have given the name of a unit instead of a command.
func explainStartError(argv []string, err error) (int, error) {
	name := argv[0]
	exit := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		exit = exitNotFound
	}

	// err contains the command's name. The returned error adds that name itself, so keep only the cause of err.
	var execErr *exec.Error
	var pathErr *fs.PathError
	switch {
	case exit == exitNotFound && charm.IsUnit(name) && len(argv) == 1:
		err = errors.New("no such unit or file exists")
	case exit == exitNotFound && charm.IsUnit(name):
		err = fmt.Errorf("no such file exists; to run a command as a unit, give --unit %s", name)
	case errors.As(err, &execErr):
		err = execErr.Err
	case errors.As(err, &pathErr):
		err = pathErr.Err
	}

	return exit, fmt.Errorf("cannot run %q: %w", name, err)
}

// exitCode returns the exit code of an ended process as shells do: 128+N if signal N killed the process.
func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// shellArgv returns the command line of the operator's shell. For bash it writes a start file that reads the
// operator's ~/.bashrc and then adds the unit to the prompt.
func (r *run) shellArgv(d workDir) ([]string, error) {
	shell := cmp.Or(r.Shell, "/bin/sh")
	if filepath.Base(shell) != "bash" {
		return []string{shell}, nil
	}
	if err := os.WriteFile(d.bashrcPath(), []byte(bashrcText(r.Unit, d.toolsPath())), 0o600); err != nil {
		return nil, fmt.Errorf("cannot prepare the shell: %w", err)
	}

	return []string{shell, "--rcfile", d.bashrcPath()}, nil
}

// bashrcText returns the start file for bash. It adds the unit to the prompt, and the tools to the front of
// PATH, which ~/.bashrc may have changed.
func bashrcText(unit, tools string) string {
	return fmt.Sprintf(`[ ! -f ~/.bashrc ] || . ~/.bashrc
PS1='(%s) '$PS1
PATH=%s:$PATH
`, unit, shellQuote(tools))
}

// shellQuote quotes a text as one word for a shell.
func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// signalRelay catches the signals of this process, so that they do not end it, and forwards them to its
// command.
type signalRelay struct {
	signals chan os.Signal // buffered, since package signal does not wait for a receiver
	wg      sync.WaitGroup
}

// newSignalRelay starts to catch signals. It leaves out signals that this process ignores, as under nohup, so
// that the command also ignores them.
func newSignalRelay() *signalRelay {
	r := &signalRelay{signals: make(chan os.Signal, 16)}
	for _, s := range []os.Signal{
		syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2,
	} {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}

	return r
}

// forwardTo starts to forward signals to the process, until close is called. It leaves out signals that a
// terminal sends to both processes.
func (r *signalRelay) forwardTo(p *os.Process) {
	r.wg.Go(func() {
		for s := range r.signals {
			if !isTyped(s) {
				_ = p.Signal(s) // fails if the process has ended
			}
		}
	})
}

// close stops catching and forwarding signals.
func (r *signalRelay) close() {
	signal.Stop(r.signals) // after this no signal is sent on the channel
	close(r.signals)
	r.wg.Wait()
}

// isTyped reports whether the signal can come from the keyboard: this process must be in the foreground of its
// terminal. A terminal sends such signals to its whole foreground process group, to which the command also belongs.
func isTyped(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.OpenFile("/dev/tty", os.O_RDONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()

	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// workDir is the directory of one run. The run holds a lock on it:
//
//	tools/   symlinks to this binary, named after the hook tools
//	s        the socket through which the tools reach this process
//	bashrc   the start file of bash, if bash is the operator's shell
type workDir struct {
	dir  string
	lock *os.File // the open directory itself, locked
}

// newWorkDir creates a locked directory in base, with symlinks for the hook tools. It also removes the
// directories of runs that were killed: no process holds a lock on them. newWorkDir locks base while it
// works, since another run must not remove the new directory before that directory is locked.
func newWorkDir(base string, links Links) (d workDir, err error) {
	baseLock, err := osutil.LockFile(base)
	if err != nil {
		return d, fmt.Errorf("cannot lock %q: %w", base, err)
	}
	defer baseLock.Close()

	removeStaleDirs(base)
	if d.dir, err = os.MkdirTemp(base, ""); err != nil {
		return d, fmt.Errorf("cannot create a directory of hook tools: %w", err)
	}

	if d.lock, err = osutil.LockFile(d.dir); err != nil {
		d.remove()
		return d, err
	}
	if err := d.linkTools(links); err != nil {
		d.remove()
		return d, err
	}

	return d, nil
}

// removeStaleDirs removes the directories in base that no process has locked.
func removeStaleDirs(base string) {
	entries, _ := os.ReadDir(base) // after an error, a later run removes the other directories
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		lock, err := osutil.TryLockFile(dir, os.O_RDONLY)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(dir) // a later run tries again
		lock.Close()
	}
}

// linkTools creates the directory for PATH, with a symlink for each hook tool.
func (d workDir) linkTools(links Links) error {
	if err := os.Mkdir(d.toolsPath(), 0o700); err != nil {
		return fmt.Errorf("cannot create a directory of hook tools: %w", err)
	}

	for _, name := range links.Names {
		if err := os.Symlink(links.Binary, filepath.Join(d.toolsPath(), name)); err != nil {
			return fmt.Errorf("cannot link a hook tool: %w", err)
		}
	}

	return nil
}

func (d workDir) toolsPath() string  { return filepath.Join(d.dir, "tools") }
func (d workDir) socketPath() string { return filepath.Join(d.dir, "s") }
func (d workDir) bashrcPath() string { return filepath.Join(d.dir, "bashrc") }

// remove removes the directory, and then releases its lock.
func (d workDir) remove() {
	_ = os.RemoveAll(d.dir) // if this fails, a later run removes the directory
	d.lock.Close()          // does nothing if lock is nil
}
