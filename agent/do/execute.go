package do

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"bijou/state/charm"
)

// Streams are the command's; files are passed to it as they are.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
}

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
		Path: path, Args: argv, Env: r.buildEnv(d, client),
		Stdin: r.Streams.In, Stdout: r.Streams.Out, Stderr: r.Streams.Err,
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
	if tool := filepath.Join(tools, name); name != "" {
		if _, err := os.Stat(tool); err == nil {
			return tool, nil
		}
	}
	return exec.LookPath(name)
}

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
		err = fmt.Errorf("there is no such file; to run a command as a unit say --unit %s", name)
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
