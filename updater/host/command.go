package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"bijou/state/childenv"
	"bijou/updater/activity"
	"bijou/updater/release"
)

// defaultTimeout limits each command of a component, unless the component or the configuration sets a
// different timeout.
const defaultTimeout = 20 * time.Minute

type timeoutKey struct{}

// withTimeout returns a context that carries the timeout of each command of the component.
func (h *Host) withTimeout(ctx context.Context, c release.Component) context.Context {
	timeout := time.Duration(c.Timeout)
	if timeout == 0 {
		timeout = time.Duration(h.commandTimeout.Load())
	}
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// hungError is the cause of a context whose command has exceeded its timeout.
type hungError struct{ timeout time.Duration }

func (e hungError) Error() string {
	return fmt.Sprintf("timed out after %s, twice", e.timeout)
}

// retryHung calls f with the timeout that ctx carries. If f exceeds the timeout, retryHung cancels it and
// calls it once more. So f must be repeatable.
func retryHung(ctx context.Context, f func(ctx context.Context) error) error {
	timeout, _ := ctx.Value(timeoutKey{}).(time.Duration)
	if timeout == 0 {
		return f(ctx)
	}

	for again := true; ; again = false {
		limit, cancel := context.WithTimeoutCause(ctx, timeout, hungError{timeout})
		// Commands that f runs have no additional timeout.
		err := f(context.WithValue(limit, timeoutKey{}, time.Duration(0)))
		hung := err != nil && timedOut(ctx, limit)
		cancel()
		if !hung || !again {
			return err
		}
		slog.Warn("ended a program that hung; trying it once more", "error", err)
	}
}

// killDelay is how long to wait for a command that has exited, but whose children keep its output open.
const killDelay = time.Second

// newCommand returns a command that is killed together with its children when ctx is done.
func newCommand(ctx context.Context, words []string) *exec.Cmd {
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Env = childenv.New(os.Environ(), childenv.Program)
	c.WaitDelay = killDelay
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

func runCommand(ctx context.Context, words []string) error {
	return retryHung(ctx, func(ctx context.Context) error { return runOnce(ctx, words, nil) })
}

// runOnce runs a command. Its error contains the end of the command's output. The exception is a command with
// a stdin: the input may be a secret, which the command could print.
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
		said = "(its output is not shown)"
	}
	return fmt.Errorf("%q: %w: %s", strings.Join(words, " "), err, said)
}

// terminal is a pseudo-terminal into which one line is typed. Programs that ask for secrets need one: Vault
// reads a key only from a terminal. The terminal does not echo, no character in the line is special, and the
// end of input follows the line.
type terminal struct {
	controller *os.File
	tty        *os.File // the program's stdin
	line       []byte
	typing     sync.WaitGroup
}

// maxLine limits the line, in bytes.
const maxLine = 4000

// endOfInput is control-D.
const endOfInput = 4

// newTerminal opens a pseudo-terminal, and types the line and the end of input into the program that reads
// from it.
func newTerminal(line []byte) (*terminal, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("cannot write a line of more than %d bytes to the program", maxLine)
	}
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open a terminal: %w", err)
	}

	t := &terminal{controller: ours, line: append(append([]byte{}, line...), '\n', endOfInput)}
	if err := t.openTTY(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open a terminal: %w", err), ours.Close())
	}

	// typeLine ends when close is called.
	t.typing.Go(t.typeLine)
	return t, nil
}

// openTTY opens the program's side of the terminal.
func (t *terminal) openTTY() error {
	conn, err := t.controller.SyscallConn()
	if err != nil {
		return err
	}

	var number int
	failed := conn.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			return
		}
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCPKT, 1)
	})

	if err := errors.Join(failed, err); err != nil {
		return err
	}
	if t.tty, err = os.OpenFile("/dev/pts/"+strconv.Itoa(number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return err
	}
	if err := setLineMode(int(t.tty.Fd())); err != nil {
		return errors.Join(err, t.tty.Close())
	}

	return nil
}

// setLineMode makes a terminal forward lines unchanged, without echo.
func setLineMode(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}

	mode.Iflag = 0
	mode.Oflag = 0
	mode.Lflag = unix.ICANON
	mode.Cc = [len(mode.Cc)]uint8{unix.VEOF: endOfInput, unix.VMIN: mode.Cc[unix.VMIN]}
	return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
}

// typeLine types the line. If the program discards its input before it reads, as getpass(3) does, typeLine
// types the line again.
func (t *terminal) typeLine() {
	_, err := t.controller.Write(t.line)
	for said := make([]byte, 512); err == nil; {
		var n int
		n, err = t.controller.Read(said)
		if n > 0 && said[0]&unix.TIOCPKT_FLUSHREAD != 0 {
			_, err = t.controller.Write(t.line)
		}
	}
}

func (t *terminal) close() {
	_ = t.tty.Close()
	_ = t.controller.Close()
	t.typing.Wait()
}

// afterStart runs the component's command after a start, once for each line of the file that it names. The
// lines are secrets. The command gets the lines only on its stdin, a terminal, and no error contains the
// command's output.
func (h *Host) afterStart(ctx context.Context, c release.Component) error {
	a := c.AfterStart
	if a == nil {
		return nil
	}

	within := h.healthyWithin(c)
	if a.EachLineOf == "" {
		return retryCommand(ctx, within, a.Command, nil)
	}

	lines, err := readSecrets(a.EachLineOf)
	if err != nil {
		return err
	}

	for i, line := range lines {
		if err := retryCommand(ctx, within, a.Command, line); err != nil {
			return fmt.Errorf("%q failed with line %d of %s: %w", a.Command[0], i+1, a.EachLineOf, err)
		}
	}

	return nil
}

// readSecrets returns the lines of a file of keys. It returns an error if other users can read the file.
func readSecrets(path string) (lines [][]byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("cannot use the keys in %[1]s: other users have access to the file; run: chmod 600 %[1]s", path)
	}

	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}

	for line := range bytes.Lines(data) {
		line = bytes.TrimSpace(line)
		if len(line) > 0 {
			lines = append(lines, line)
		}
	}

	return lines, nil
}

// retryCommand runs the command until it succeeds or the timeout has passed, since a service that was just
// started may not answer yet.
func retryCommand(ctx context.Context, within time.Duration, command []string, line []byte) error {
	if timeout, _ := ctx.Value(timeoutKey{}).(time.Duration); timeout > within {
		ctx = context.WithValue(ctx, timeoutKey{}, within)
	}

	end := time.Now().Add(within)
	return poll(ctx, func() (bool, error) {
		err := retryHung(ctx, func(ctx context.Context) error { return runWithLine(ctx, command, line) })
		if _, hung := errors.AsType[hungError](err); hung || time.Now().After(end) {
			return err == nil, err
		}
		return err == nil, nil
	})
}

// runWithLine runs a command with the line as its input on a terminal. If line is nil, the command has no
// input.
func runWithLine(ctx context.Context, command []string, line []byte) error {
	if line == nil {
		return runOnce(ctx, command, nil)
	}
	t, err := newTerminal(line)
	if err != nil {
		return err
	}
	defer t.close()

	return runOnce(ctx, command, t.tty)
}
