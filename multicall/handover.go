package multicall

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

	"bijou/multicall/home"
	"bijou/state"
)

// handover ends a daemon's work when the environment is to run another binary,
// as `juju upgrade-juju` has said: hooks in flight end with this one.
type handover struct {
	env    home.Environment
	own    string // VERSION-SHA8 of what this process runs
	retire chan struct{}
	next   string // the folder to go on from; set before retire is closed
}

// newHandover makes that of a daemon which runs from those tools.
func newHandover(e home.Environment, tools string) *handover {
	return &handover{env: e, own: filepath.Base(tools), retire: make(chan struct{})}
}

// run watches for the order. It returns when ctx is done.
func (h *handover) run(ctx context.Context, s *state.State) error {
	told := ""
	for h.env.Dir != "" && ctx.Err() == nil {
		err := h.follow(ctx, s)
		if h.next != "" {
			close(h.retire)
			break
		}
		if errors.Is(err, state.ErrStoreGone) || errors.Is(err, state.ErrNotFound) {
			break // which the others find out, too
		}
		if err == nil {
			told = ""
			continue
		}
		if told != err.Error() && ctx.Err() == nil && !errors.Is(err, state.ErrCompacted) {
			told = err.Error()
			slog.Warn("cannot see which binary to run; trying again", "error", err)
		}
		rest(ctx, comeback)
	}
	<-ctx.Done()
	return nil
}

// rest waits, at most until ctx is done.
func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// follow looks which binary is to run, and goes over to it or waits for a change.
func (h *handover) follow(ctx context.Context, s *state.State) error {
	var env state.Environment
	var revision int64
	err := look(ctx, s, func(v *state.View) (err error) {
		if env, err = v.Environment(); err == nil {
			revision, err = v.Revision()
		}
		return err
	})
	if err != nil {
		return err
	}
	if h.wants(env.Tools) {
		if err := h.obtain(ctx, s, env.Tools); err != nil {
			return err
		}
		if h.ordered(ctx, env.Tools) {
			return nil
		}
	}
	return change(ctx, s, revision)
}

// wants says if that is another binary than the process runs.
func (h *handover) wants(name string) bool {
	return name != "" && name != h.own && filepath.Base(name) == name
}

// change waits for one of the environment's record; events that are missing, or
// a store that is away, are a reason to look again.
func change(ctx context.Context, s *state.State, revision int64) error {
	w, err := s.Watch(ctx, revision, state.WatchEnvironment())
	if err != nil {
		return err
	}
	defer w.Close()
	_, err = w.Next(ctx)
	return err
}

// trial is how long a binary may take to say its version; one that hangs must
// not keep the agent from ending.
const trial = 30 * time.Second

// ordered says if the process can go on as that binary: that one works.
func (h *handover) ordered(ctx context.Context, name string) bool {
	folder := filepath.Join(h.env.Dir, "tools", name)
	ctx, cancel := context.WithTimeout(ctx, trial)
	defer cancel()
	version := exec.CommandContext(ctx, filepath.Join(folder, "bijou"), "version")
	version.WaitDelay = time.Second // for what it has started
	if out, err := version.CombinedOutput(); err != nil {
		slog.Error("cannot go over to another binary: it does not run here", "tools", name, "error", err, "output", string(out))
		return false
	}
	slog.Info("going over to another binary", "from", h.own, "to", name)
	h.next = folder
	return true
}

// succeeded is the error of a daemon whose work another binary is to go on with.
type succeeded struct{ folder string }

func (s succeeded) Error() string { return "goes on from " + s.folder }

// outcome is what a daemon's roles ended with, or succeeded if they were retired.
func (h *handover) outcome(ctx context.Context, err error) error {
	if err == nil && h.next != "" && ctx.Err() == nil {
		return succeeded{h.next}
	}
	return err
}

// exec makes this process the successor's, with the same arguments. It returns
// only if that fails.
func (s succeeded) exec() error {
	path := filepath.Join(s.folder, filepath.Base(os.Args[0]))
	if _, err := os.Lstat(path); errors.Is(err, os.ErrNotExist) {
		path = filepath.Join(s.folder, "bijou") // called as "bijou APPLET", by whatever name
	}
	return fmt.Errorf("cannot go on as %q: %w", path, syscall.Exec(path, os.Args, os.Environ()))
}
