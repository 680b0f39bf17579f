package host

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// tryTimeout is how long a program that is tried may take, also where it is slow.
const tryTimeout = 2 * time.Minute

// trialCommands are what a program must be able to do before it takes anything's place.
var trialCommands = [][]string{{"neco", "plan"}, {"neco-worker", "--help"}, {"neco-updater", "--help"}}

// tryProgram has a program show its plan, and what its daemons can do, before it takes
// anything's place: what is for another machine, or cannot read the manifest beside it,
// fails here and not where nothing could be undone.
func tryProgram(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()
	for _, trial := range trialCommands {
		if out, err := tryAs(ctx, program, trial); err != nil {
			return fmt.Errorf("cannot install the release: its program does not run as %q: %w: %s", strings.Join(trial, " "), err, tail(out))
		}
	}
	return nil
}

// tryAs runs the program with those arguments, the first of which is its name.
func tryAs(ctx context.Context, program string, args []string) (out []byte, err error) {
	err = poll(ctx, func() (bool, error) {
		c := exec.CommandContext(ctx, program)
		c.Args, c.WaitDelay = args, killDelay
		var err error
		out, err = c.CombinedOutput()
		if errors.Is(err, syscall.ETXTBSY) { // a child that was forked meanwhile holds it open for a moment
			return false, nil
		}
		return true, err
	})
	return out, err
}
