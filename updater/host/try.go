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

// tryLimit is how long a program that is tried may take, also where it is slow.
const tryLimit = 2 * time.Minute

// trials are what a program must be able to do before it takes anything's place.
var trials = [][]string{{"neco", "plan"}, {"neco-worker", "--help"}, {"neco-updater", "--help"}}

// try has a program show its plan, and what its daemons can do, before it takes
// anything's place: what is for another machine, or cannot read the manifest beside it,
// fails here and not where nothing could be undone.
func try(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, tryLimit)
	defer cancel()
	for _, trial := range trials {
		if out, err := tryAs(ctx, program, trial); err != nil {
			return fmt.Errorf("cannot install the release: its program does not run as %q: %w: %s", strings.Join(trial, " "), err, tail(out))
		}
	}
	return nil
}

// tryAs runs the program with those arguments, the first of which is its name.
func tryAs(ctx context.Context, program string, args []string) (out []byte, err error) {
	err = until(ctx, func() (bool, error) {
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
