package host

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"bijou/updater/release"
)

// afterStart runs the component's command, once for each line of the file that it names.
// The lines are secrets: they go to the command's stdin, a terminal, and nowhere else,
// and what the command prints is not repeated.
func (h *Host) afterStart(ctx context.Context, a *release.AfterStart) error {
	if a == nil {
		return nil
	}
	if a.EachLineOf == "" {
		return h.retryCommand(ctx, a.Command, nil)
	}
	lines, err := readSecrets(a.EachLineOf)
	if err != nil {
		return err
	}
	for i, line := range lines {
		if err := h.retryCommand(ctx, a.Command, line); err != nil {
			return fmt.Errorf("%q failed with line %d of %s: %w", a.Command[0], i+1, a.EachLineOf, err)
		}
	}
	return nil
}

func readSecrets(path string) (lines [][]byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("cannot use the keys in %s: others may read it; chmod 600 it", path)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the keys: %w", err)
	}
	for line := range bytes.Lines(data) {
		if line = bytes.TrimSpace(line); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines, nil
}

// retryCommand bears with a service that was just started, and may not listen yet.
func (h *Host) retryCommand(ctx context.Context, command []string, line []byte) error {
	if timeout, _ := ctx.Value(timeoutKey{}).(time.Duration); timeout > h.healthTimeout {
		ctx = context.WithValue(ctx, timeoutKey{}, h.healthTimeout)
	}
	end := time.Now().Add(h.healthTimeout)
	return poll(ctx, func() (bool, error) {
		err := retryHung(ctx, func(ctx context.Context) error { return runWithLine(ctx, command, line) })
		if _, hung := errors.AsType[hungError](err); hung || time.Now().After(end) {
			return err == nil, err
		}
		return err == nil, nil
	})
}

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
