package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"bijou/state/childenv"
	"bijou/state/osutil"
)

// tryTimeout limits one trial. The limit is long enough for a slow machine.
const tryTimeout = 2 * time.Minute

// tryProgram runs `neco plan` and the help of the daemons with the new program, before that program replaces
// anything. A program for a different architecture, or one that cannot read its manifest, fails at this point, when
// nothing needs to be undone.
func tryProgram(ctx context.Context, program string) error {
	ctx, cancel := context.WithTimeout(ctx, tryTimeout)
	defer cancel()

	for _, trial := range [][]string{{"neco", "plan"}, {"neco-worker", "--help"}, {"neco-updater", "--help"}} {
		if out, err := tryAs(ctx, program, trial); err != nil {
			return fmt.Errorf("cannot install the release: its program does not run as %q: %w: %s",
				strings.Join(trial, " "), err, tail(out))
		}
	}

	return nil
}

// tryAs runs the program with the arguments, and returns its output. The first argument is the name under
// which the program runs, and selects what it does.
func tryAs(ctx context.Context, program string, args []string) (out []byte, err error) {
	// RetryBusy waits while another process still has the program open for writing.
	err = osutil.RetryBusy(tryTimeout, func() (err error) {
		c := exec.CommandContext(ctx, program)
		c.Args = args
		c.WaitDelay = killDelay
		c.Env = childenv.New(os.Environ(), childenv.Program)
		out, err = c.CombinedOutput()
		return err
	})
	if isUnreadable(err) {
		// A part of the program could not be read, so the disk is at fault, and not the release.
		return nil, fmt.Errorf("cannot read %s: %w", program, syscall.EIO)
	}

	return out, err
}
