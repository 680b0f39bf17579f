// Package hookexec runs the process of one hook: which file, with what
// environment and descriptors, where its output goes, and how an agent that
// died in the middle finds the process again.
//
// It knows nothing of state, queues or hook tools: agent/uniter decides what is
// run and what the outcome means. Only agent/uniter and agent/do import it.
package hookexec

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long a hook's inherited output descriptors are waited for
// after its process has exited: a daemon that it left behind may hold them.
const Patience = 5 * time.Second

// Stream is one of the two outputs of a hook.
type Stream string

// The two outputs.
const (
	Stdout Stream = "stdout"
	Stderr Stream = "stderr"
)

// Spec is one run of one hook.
type Spec struct {
	ID       string   // names this run in its record
	Hook     string   // "db-relation-changed"
	CharmDir string   // working directory, absolute
	Env      []string // the whole environment; see Environment

	// Record is the file that notes the process before it is let go.
	Record string
	// Output gets every line of output as it comes, without its end. It is
	// called from two goroutines.
	Output func(s Stream, line string)
	// LetGo, if set, is called as soon as the process is on its way.
	LetGo func()
	// Patience replaces the constant; for tests.
	Patience time.Duration
}

// Outcome says how a hook ended.
type Outcome struct {
	Missing     bool   // there is no such hook, which is success
	Interrupted bool   // ctx was done; the process group was killed
	Failure     string // why it failed, "exit code 1"; empty on success
}

// Run runs one hook and waits for its end, and at most Patience longer for its
// output. When ctx is done first, the hook's process group is killed.
//
// A hook that cannot be started is a failed hook.
func (r *Runner) Run(ctx context.Context, s Spec) Outcome {
	path, err := find(s.CharmDir, s.Hook)
	if errors.Is(err, fs.ErrNotExist) {
		return Outcome{Missing: true}
	}
	if err != nil {
		return Outcome{Failure: err.Error()}
	}
	p, err := start(s, path)
	if err != nil {
		return Outcome{Failure: err.Error()}
	}
	out := r.capture(p, s)
	if err := p.letGo(s, path); err != nil {
		_ = p.wait(ctx)
		out.finish()
		return Outcome{Failure: err.Error()}
	}
	if s.LetGo != nil {
		s.LetGo()
	}
	outcome := p.wait(ctx)
	out.finish()
	return outcome
}

// find answers the file that is run for a hook: the charm's dispatch if it has
// one, else the hook's own; fs.ErrNotExist if there is neither.
func find(charmDir, hook string) (string, error) {
	if _, err := os.Stat(charmDir); err != nil { // or else every hook would be missing, and succeed
		return "", fmt.Errorf("cannot look at the charm: %v", err)
	}
	for _, name := range []string{"dispatch", filepath.Join("hooks", hook)} {
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

// verdict words the end of a process.
func verdict(err error) Outcome {
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
	return Outcome{Failure: fmt.Sprintf("exit code %d", exit.ExitCode())}
}
