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

// handover ends a daemon's work when the environment is to run another binary, as `juju
// upgrade-juju` has ordered: hooks in flight end with this one.
type handover struct {
	env        home.Environment
	ownTools   string   // VERSION-SHA8 of what this process runs
	links      []string // to make beside a binary that is fetched
	drain      chan struct{}
	nextFolder string // the folder of tools to re-execute from; set before drain is closed
}

func newHandover(e home.Environment, tools string, links []string) *handover {
	return &handover{env: e, ownTools: filepath.Base(tools), links: links, drain: make(chan struct{})}
}

// watch blocks until ctx is done, also after it has seen the order.
func (h *handover) watch(ctx context.Context, s *state.State) error {
	logged := ""

	for h.env.Dir != "" && ctx.Err() == nil {
		err := h.checkTools(ctx, s)
		if h.nextFolder != "" {
			close(h.drain)
			break
		}

		if errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrNotFound) {
			break // which the others find out, too
		}
		if err == nil {
			logged = ""
			continue
		}

		if logged != err.Error() && ctx.Err() == nil && !errors.Is(err, state.ErrHistoryLost) {
			logged = err.Error()
			slog.Warn("cannot see which binary to run; trying again", "error", err)
		}
		_ = backoff.Sleep(ctx, daemon.RetryInterval)
	}

	<-ctx.Done()
	return nil
}

// checkTools prepares the hand-over if another binary is ordered, else waits for a change.
func (h *handover) checkTools(ctx context.Context, s *state.State) error {
	var revision int64
	env, err := daemon.ReadRetrying(ctx, s, func(v *state.View) (env state.Environment, err error) {
		if revision, err = v.Revision(); err == nil {
			env, err = v.Environment()
		}
		return env, err
	})
	if err != nil {
		return err
	}

	if name := env.Tools; name != "" && name != h.ownTools && filepath.Base(name) == name {
		if err := h.ensureTools(ctx, s, name); err != nil {
			return err
		}
		if h.prepareReexec(ctx, name) {
			return nil
		}
	}

	return s.Await(ctx, revision, state.WatchEnvironment())
}

// trialTimeout keeps a binary that hangs from keeping the agent from ending.
const trialTimeout = 30 * time.Second

func (h *handover) prepareReexec(ctx context.Context, name string) bool {
	folder := filepath.Join(h.env.Dir, "tools", name)
	ctx, cancel := context.WithTimeout(ctx, trialTimeout)
	defer cancel()

	version := exec.CommandContext(ctx, filepath.Join(folder, "bijou"), "version")
	version.Env = childenv.New(os.Environ(), childenv.Program)
	version.WaitDelay = time.Second // for what it has started
	if out, err := version.CombinedOutput(); err != nil {
		slog.Error("cannot go over to another binary: it does not run here",
			"tools", name, "error", err, "output", string(out))
		return false
	}

	slog.Info("going over to another binary", "from", h.ownTools, "to", name)
	h.nextFolder = folder
	return true
}

// toolsReexec continues from another folder of tools.
type toolsReexec struct{ folder string }

func (s toolsReexec) Error() string { return "goes on from " + s.folder }

// run runs the roles, and watches for the order.
func (h *handover) run(ctx context.Context, s *state.State, roles ...daemon.Role) error {
	err := daemon.RunRoles(ctx, append(roles, func(ctx context.Context) error { return h.watch(ctx, s) }))
	if err == nil && h.nextFolder != "" && ctx.Err() == nil {
		return toolsReexec{h.nextFolder}
	}
	return withMovedHint(err)
}

// Exec keeps the arguments.
func (s toolsReexec) Exec() error {
	path := filepath.Join(s.folder, filepath.Base(os.Args[0]))
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		path = filepath.Join(s.folder, "bijou") // called as "bijou APPLET", by whatever name
	}
	return fmt.Errorf("cannot go on as %q: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}
