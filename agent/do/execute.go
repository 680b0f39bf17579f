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

// Streams are the command's; files are passed to it as they are.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

// execute runs the command, or a shell if there is none, and returns its exit code. It passes this
// process's signals on to it.
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

// findCommand finds a command as a shell would, and the tools before everything else.
func findCommand(name, tools string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}

	tool := filepath.Join(tools, name)
	if name != "" {
		if _, err := os.Stat(tool); err == nil {
			return tool, nil
		}
	}

	return exec.LookPath(name)
}

// explainStartError returns the exit code and the error for a command that could not be started.
func explainStartError(argv []string, err error) (int, error) {
	name := argv[0]
	exit := exitCannotRun
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		exit = exitNotFound
	}
	var cause *exec.Error
	var at *fs.PathError

	switch {
	case exit == exitNotFound && charm.IsUnit(name) && len(argv) == 1:
		err = errors.New("there is no such unit, and no such file")
	case exit == exitNotFound && charm.IsUnit(name):
		err = fmt.Errorf("there is no such file; to run a command as a unit, give --unit %s", name)
	case errors.As(err, &cause):
		err = cause.Err
	case errors.As(err, &at):
		err = at.Err
	}

	return exit, fmt.Errorf("cannot run %q: %w", name, err)
}

func exitCode(s *os.ProcessState) int {
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return s.ExitCode()
}

// shellArgv returns the command line of the operator's shell. It gives bash a start file that reads the
// operator's own and then shows the unit in the prompt.
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

// bashrcText puts the unit into the prompt, and the tools back to the PATH's front.
func bashrcText(unit, tools string) string {
	return fmt.Sprintf(`[ ! -f ~/.bashrc ] || . ~/.bashrc
PS1='(%s) '$PS1
PATH=%s:$PATH
`, unit, shellQuote(tools))
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// signalRelay keeps this process alive while its command runs, and forwards the signals
// that are meant for the command.
type signalRelay struct {
	signals chan os.Signal // buffered: the sender does not wait for us
	wg      sync.WaitGroup
}

// newSignalRelay catches the signals. Those that the caller has ignored (nohup) stay
// ignored, by the command too.
func newSignalRelay() *signalRelay {
	r := &signalRelay{signals: make(chan os.Signal, 16)}
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2} {
		if !signal.Ignored(s) {
			signal.Notify(r.signals, s)
		}
	}

	return r
}

// forwardTo sends the process the signals that this one gets, except those that a terminal sends to both.
func (r *signalRelay) forwardTo(p *os.Process) {
	r.wg.Go(func() {
		for s := range r.signals {
			if !isTyped(s) {
				_ = p.Signal(s) // it may have ended
			}
		}
	})
}

func (r *signalRelay) close() {
	signal.Stop(r.signals) // none is sent any more
	close(r.signals)
	r.wg.Wait()
}

// isTyped reports whether a signal comes from the keyboard: the terminal sends those to all
// processes of the group in its foreground, the command among them.
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

// workDir is the folder of one run, locked while it lasts:
//
//	tools/   links to this binary, under the names that the command may call
//	s        the socket on which the tools reach it
//	bashrc   what bash reads when it is the operator's shell
type workDir struct {
	dir  string
	lock *os.File // the open folder itself
}

// newWorkDir makes a locked directory with links of the hook tools. It removes directories that nobody
// holds a lock on, since their processes were killed. It locks base meanwhile, so that no other run is
// between making and locking its own.
func newWorkDir(base string, links Links) (d workDir, err error) {
	entry, err := osutil.LockFile(base)
	if err != nil {
		return d, fmt.Errorf("cannot lock %q: %w", base, err)
	}
	defer entry.Close()

	removeStaleDirs(base)
	if d.dir, err = os.MkdirTemp(base, ""); err != nil {
		return d, fmt.Errorf("cannot make a folder of hook tools: %w", err)
	}

	d.lock, err = osutil.LockFile(d.dir)
	if err == nil {
		err = d.linkTools(links)
	}
	if err != nil {
		d.remove()
	}
	return d, err
}

// removeStaleDirs removes the directories of processes that have died: nobody holds their locks.
func removeStaleDirs(base string) {
	entries, _ := os.ReadDir(base) // what cannot be seen now will be another time
	for _, e := range entries {
		dir := filepath.Join(base, e.Name())
		if f, err := osutil.TryLockFile(dir, os.O_RDONLY); err == nil {
			_ = os.RemoveAll(dir)
			f.Close()
		}
	}
}

// linkTools links all hook tools into a directory for PATH.
func (d workDir) linkTools(links Links) error {
	if err := os.Mkdir(d.toolsPath(), 0o700); err != nil {
		return fmt.Errorf("cannot make a folder of hook tools: %w", err)
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

func (d workDir) remove() {
	_ = os.RemoveAll(d.dir)
	d.lock.Close() // of nil it does nothing
}
