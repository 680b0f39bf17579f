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

// timeoutKey is the key of the timeout in a context.
type timeoutKey struct{}

// withTimeout returns a context that carries the timeout of each command of the component.
func (h *Host) withTimeout(ctx context.Context, c release.Component) context.Context {
	timeout := time.Duration(c.Timeout)
	if timeout == 0 {
		timeout = time.Duration(h.commandTimeout.Load())
	}
	return context.WithValue(ctx, timeoutKey{}, timeout)
}

// hungError is the cause of a context that has ended because a command exceeded its timeout.
type hungError struct{ timeout time.Duration }

// Error describes the timeout. It says "twice", since retryHung tries each command twice.
func (e hungError) Error() string {
	return fmt.Sprintf("timed out after %s, twice", e.timeout)
}

// retryHung calls f with the timeout that ctx carries, or without a timeout if ctx carries none. If f exceeds
// the timeout, retryHung cancels f and calls it once more, so f must be repeatable.
func retryHung(ctx context.Context, f func(ctx context.Context) error) error {
	timeout, _ := ctx.Value(timeoutKey{}).(time.Duration)
	if timeout == 0 {
		return f(ctx)
	}

	for isFirst := true; ; isFirst = false {
		limit, cancel := context.WithTimeoutCause(ctx, timeout, hungError{timeout})
		// Commands that f runs have no additional timeout.
		err := f(context.WithValue(limit, timeoutKey{}, time.Duration(0)))
		isHung := err != nil && timedOut(ctx, limit)
		cancel()
		if !isHung || !isFirst {
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
	// The command gets its own process group. A negative PID sends the signal to that group.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	return c
}

// runCommand runs a command with the timeout that ctx carries. If the command exceeds the timeout, runCommand
// kills it and runs it once more.
func runCommand(ctx context.Context, words []string) error {
	return retryHung(ctx, func(ctx context.Context) error { return runOnce(ctx, words, nil) })
}

// runOnce runs a command once. stdin can be nil. The error contains the end of the command's output only if
// stdin is nil, since the input may be a secret, which the command could print.
func runOnce(ctx context.Context, words []string, stdin io.Reader) error {
	doing := activity.Begin(ctx, "runs %q", strings.Join(words, " "))
	defer doing.End()
	c := newCommand(ctx, words)
	c.Stdin = stdin
	out, err := c.CombinedOutput()
	// ErrWaitDelay means that the command itself has succeeded, but its children keep the output open.
	if err == nil || errors.Is(err, exec.ErrWaitDelay) {
		return nil
	}

	if ctx.Err() != nil {
		// The cause, such as a timeout, explains the failure better than err.
		err = context.Cause(ctx)
	}
	shown := tail(out)
	if stdin != nil {
		shown = "(its output is not shown)"
	}
	return fmt.Errorf("%q: %w: %s", strings.Join(words, " "), err, shown)
}

// terminal is a pseudo-terminal into which one line is typed. Programs that ask for secrets need one: Vault
// reads a key only from a terminal. The terminal does not echo, no character in the line is special, and the
// end of input follows the line.
type terminal struct {
	controller *os.File       // the side that types
	tty        *os.File       // the program's side, which is its stdin
	line       []byte         // the line and the end of input
	typing     sync.WaitGroup // waits for typeLine
}

// maxLine limits the line, in bytes.
const maxLine = 4000

// endOfInput is control-D.
const endOfInput = 4

// newTerminal opens a pseudo-terminal, and starts to type the line and the end of input into the program that
// reads from it. The caller must close the terminal.
func newTerminal(line []byte) (*terminal, error) {
	if len(line) > maxLine {
		return nil, fmt.Errorf("cannot write a line of more than %d bytes to the program", maxLine)
	}
	controller, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open a terminal: %w", err)
	}

	t := &terminal{controller: controller, line: append(append([]byte{}, line...), '\n', endOfInput)}
	if err := t.openTTY(); err != nil {
		return nil, errors.Join(fmt.Errorf("cannot open a terminal: %w", err), controller.Close())
	}

	t.typing.Go(t.typeLine)
	return t, nil
}

// openTTY opens the program's side of the terminal, and sets the modes of both sides.
func (t *terminal) openTTY() error {
	conn, err := t.controller.SyscallConn()
	if err != nil {
		return err
	}

	var number int // of the terminal, in /dev/pts
	controlErr := conn.Control(func(fd uintptr) {
		if number, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN); err != nil {
			return
		}
		// Unlock the program's side, so that it can be opened.
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err != nil {
			return
		}
		// In packet mode, a read shows whether the program has discarded its input.
		err = unix.IoctlSetPointerInt(int(fd), unix.TIOCPKT, 1)
	})
	if err := errors.Join(controlErr, err); err != nil {
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

// setLineMode makes a terminal forward lines unchanged, without echo. Apart from the ends of lines, only the
// character endOfInput has an effect.
func setLineMode(fd int) error {
	mode, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}

	mode.Iflag = 0
	mode.Oflag = 0
	mode.Lflag = unix.ICANON
	// Zero disables a control character. VMIN is a number, not a character, and stays.
	mode.Cc = [len(mode.Cc)]uint8{unix.VEOF: endOfInput, unix.VMIN: mode.Cc[unix.VMIN]}
	return unix.IoctlSetTermios(fd, unix.TCSETS, mode)
}

// typeLine types the line. If the program discards its input before it reads, as getpass(3) does, typeLine
// types the line again. It returns when the terminal is closed.
func (t *terminal) typeLine() {
	_, err := t.controller.Write(t.line)
	packet := make([]byte, 512)
	for err == nil {
		var n int
		n, err = t.controller.Read(packet)
		wasDiscarded := n > 0 && packet[0]&unix.TIOCPKT_FLUSHREAD != 0
		if wasDiscarded {
			_, err = t.controller.Write(t.line)
		}
	}
}

// close closes both sides of the terminal, and waits for the end of typeLine.
func (t *terminal) close() {
	_ = t.tty.Close()
	_ = t.controller.Close()
	t.typing.Wait()
}

// afterStart runs the component's command after a start, if there is one. The command must succeed once for each
// line of the file that EachLineOf names, or once without input if EachLineOf is "". The lines are secrets. The
// command gets a line only on its stdin, a terminal, and the error then does not contain the command's output.
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

// readSecrets returns the lines of a file of keys, without blanks around them. It leaves out blank lines. It
// returns an error if the file's mode gives its group or other users any access.
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

// retryCommand runs the command with the line as its input until the command succeeds, since a service that
// was just started may not answer yet. It returns the last error if the command still fails after within, or
// if the command hangs twice. line can be nil, as in runWithLine.
func retryCommand(ctx context.Context, within time.Duration, command []string, line []byte) error {
	// No single run takes longer than within.
	if timeout, _ := ctx.Value(timeoutKey{}).(time.Duration); timeout > within {
		ctx = context.WithValue(ctx, timeoutKey{}, within)
	}

	end := time.Now().Add(within)
	return poll(ctx, func() (bool, error) {
		err := retryHung(ctx, func(ctx context.Context) error { return runWithLine(ctx, command, line) })
		if err == nil {
			return true, nil
		}

		_, isHung := errors.AsType[hungError](err)
		if isHung || time.Now().After(end) {
			return false, err
		}
		return false, nil
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
