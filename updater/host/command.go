package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bijou/updater/activity"
	"bijou/updater/release"
)

// defaultTimeout bounds each command of a component, unless the component or the
// configuration says otherwise.
const defaultTimeout = 20 * time.Minute

type timeoutKey struct{}

// withTimeout returns a context that carries the time-out of each command of the
// component.
func (h *Host) withTimeout(ctx context.Context, c release.Component) context.Context {
	timeout := time.Duration(c.Timeout)
	if timeout == 0 {
		timeout = time.Duration(h.commandTimeout.Load())
	}
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// hungError is the cause of a context whose command hung.
type hungError struct{ timeout time.Duration }

func (e hungError) Error() string {
	return fmt.Sprintf("it hung: it was ended after %s, and tried twice", e.timeout)
}

// retryHung calls f, which can be repeated, under the time-out that the context carries.
// It ends an f that hangs, and tries it once more.
func retryHung(ctx context.Context, f func(ctx context.Context) error) error {
	timeout, _ := ctx.Value(timeoutKey{}).(time.Duration)
	if timeout == 0 {
		return f(ctx)
	}
	for again := true; ; again = false {
		limit, cancel := context.WithTimeoutCause(ctx, timeout, hungError{timeout})
		err := f(context.WithValue(limit, timeoutKey{}, time.Duration(0))) // what is within is a part of it
		hung := err != nil && timedOut(ctx, limit)
		cancel()
		if !hung || !again {
			return err
		}
		slog.Warn("what hung was ended, and is tried once more", "error", err)
	}
}

// killDelay is how long a command is waited for whose children hold its output.
const killDelay = time.Second

// newCommand makes a command whose children do not outlive its context.
func newCommand(ctx context.Context, words []string) *exec.Cmd {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.WaitDelay = killDelay
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

func runCommand(ctx context.Context, words []string) error {
	return retryHung(ctx, func(ctx context.Context) error { return runOnce(ctx, words, nil) })
}

// runOnce returns an error with the end of the command's output; but not if it had a
// stdin, which may be a secret: the command may repeat any part of that.
func runOnce(ctx context.Context, words []string, stdin io.Reader) error {
	doing := activity.Begin(ctx, "runs %q", strings.Join(words, " "))
	defer doing.End()
	c := newCommand(ctx, words)
	c.Stdin = stdin
	out, err := c.CombinedOutput()
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	said := tail(out)
	if stdin != nil {
		said = "(what it said is not shown)"
	}
	return fmt.Errorf("%q: %w: %s", strings.Join(words, " "), err, said)
}
