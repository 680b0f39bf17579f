package agents

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"bijou/multicall/daemon"
	"bijou/multicall/home"
	"bijou/state"
	"bijou/state/backoff"
	"bijou/state/childenv"
)

// handover ends a daemon's work when `juju upgrade-model` has ordered a different binary. Running hooks end
// under the current binary.
type handover struct {
	env        home.Environment
	ownTools   string   // VERSION-SHA8 of the binary that this process runs
	links      []string // the symlinks to create beside a fetched binary
	drain      chan struct{}
	nextFolder string // the directory of tools from which to re-execute; set before drain is closed
}

// newHandover returns the handover of a process that runs the binary in the directory tools. links are the names of the
// symlinks to create beside a fetched binary.
func newHandover(e home.Environment, tools string, links []string) *handover {
	return &handover{env: e, ownTools: filepath.Base(tools), links: links, drain: make(chan struct{})}
}

// watch closes drain once a different binary is ordered and can run. It returns only when ctx is done, also after
// it has closed drain. After an error it tries again, and logs new errors except ErrHistoryLost. If the store or the
// environment is gone, it only waits for ctx. Without the environment's directory (--env), there is no place for a
// different binary, so it also only waits for ctx.
func (h *handover) watch(ctx context.Context, s *state.State) error {
	lastLogged := ""
	for h.env.Dir != "" && ctx.Err() == nil {
		err := h.prepareOrWait(ctx, s)
		if h.nextFolder != "" {
			close(h.drain)
			break
		}

		// If the store or the environment is gone, the other roles report this error, and end the process.
		if errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrNotFound) {
			break
		}
		if err == nil {
			lastLogged = ""
			continue
		}

		isNew := err.Error() != lastLogged
		// After ErrHistoryLost, the next attempt reads the environment again, so nothing is missed.
		isNotable := ctx.Err() == nil && !errors.Is(err, state.ErrHistoryLost)
		if isNew && isNotable {
			lastLogged = err.Error()
			slog.Warn("cannot find out which binary to run; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, daemon.RetryInterval)
	}

	<-ctx.Done()
	return nil
}

// prepareOrWait prepares the hand-over if a different binary is ordered, and sets h.nextFolder if that binary can run.
// Otherwise it waits until the environment changes.
func (h *handover) prepareOrWait(ctx context.Context, s *state.State) error {
	type snapshot struct {
		env      state.Environment
		revision int64
	}
	current, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (r snapshot, err error) {
		if r.revision, err = v.Revision(); err != nil {
			return r, err
		}
		r.env, err = v.Environment()
		return r, err
	})
	if err != nil {
		return err
	}

	ordered := current.env.Tools
	isDifferent := ordered != "" && ordered != h.ownTools
	isFolderName := filepath.Base(ordered) == ordered // a path could lead to another directory
	if isDifferent && isFolderName {
		err := h.ensureTools(ctx, s, ordered)
		if errors.Is(err, state.ErrNotFound) {
			// The environment is there, and the content of the binary is not. So the error is not wrapped:
			// watch would take it for the end of the environment.
			return fmt.Errorf("the binary %q is not complete in the state: %v: run juju upgrade-model again", ordered, err)
		}
		if err != nil {
			return err
		}
		if h.prepareReexec(ctx, ordered) {
			return nil
		}
	}

	// A binary that does not run on this host is tried again only after a change.
	return s.Await(ctx, current.revision, state.WatchEnvironment())
}

// trialTimeout limits the trial of a new binary, so that a binary that hangs does not block the agent.
const trialTimeout = 30 * time.Second

// prepareReexec checks that the binary called name can print its version on this host within trialTimeout. If it can,
// prepareReexec sets h.nextFolder to the binary's directory, and returns true. Otherwise it logs why, and returns
// false.
func (h *handover) prepareReexec(ctx context.Context, name string) bool {
	folder := filepath.Join(h.env.Dir, "tools", name)
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()

	version := exec.CommandContext(ctx, filepath.Join(folder, "bijou"), "version")
	version.Env = childenv.New(os.Environ(), childenv.Program)
	// Child processes of the binary may hold its output open.
	version.WaitDelay = time.Second
	if out, err := version.CombinedOutput(); err != nil {
		slog.Error("cannot switch to a different binary: it does not run on this host",
			"tools", name, "error", err, "output", string(out))
		return false
	}

	slog.Info("switching to a different binary", "from", h.ownTools, "to", name)
	h.nextFolder = folder
	return true
}

// toolsReexec is the [daemon.Reexec] that continues with the binary in a different directory of tools.
type toolsReexec struct{ folder string }

func (s toolsReexec) Error() string { return "continues from " + s.folder }

// run runs the roles until all have ended, and watches for the order to run a different binary. If such an order
// has ended the roles without an error, and ctx is not done, it returns toolsReexec. Otherwise it returns the
// roles' error, with a hint if the error is ErrClaimed.
func (h *handover) run(ctx context.Context, s *state.State, roles ...daemon.Role) error {
	err := daemon.RunRoles(ctx, append(roles, func(ctx context.Context) error { return h.watch(ctx, s) }))
	isSwitchReady := h.nextFolder != "" && ctx.Err() == nil
	if err == nil && isSwitchReady {
		return toolsReexec{h.nextFolder}
	}
	return withMovedHint(err)
}

// Exec replaces this process with the binary in s.folder, with the same arguments. It returns only if it fails.
func (s toolsReexec) Exec() error {
	path := filepath.Join(s.folder, filepath.Base(os.Args[0]))
	// The process may have been started as "bijou APPLET", under a different name.
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		path = filepath.Join(s.folder, "bijou")
	}
	return fmt.Errorf("cannot switch to %q: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}
